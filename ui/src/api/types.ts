// Requests to the server and its answers. Times are nanoseconds since the trace's start. Unknown values are
// `null` or absent; comments call them `None`.
//
// Generated from the types of the server by `UPDATE_EXPECT=1 cargo test -p serve types`. Do not edit.

/** Start and end. */
export type Range = [start: number, end: number];

/** Id of a key's value, which is valid only in one trace; `null` if the value is unknown. */
export type Id = number | null;

/**
 * Distribution of durations on both sides. The bounds of the classes increase by a constant factor.
 */
export type BackToBack = {
/**
 * Kind of the durations.
 */
durations: Durations,
/**
 * Bounds of the classes, in nanoseconds. Class `i` contains the durations `d` with
 * `bounds[i] < d <= bounds[i + 1]`.
 */
bounds: Array<number>,
/**
 * Number of durations in each class before the change.
 */
before: Array<number>,
/**
 * Number of durations in each class after the change.
 */
after: Array<number>,
/**
 * Wasserstein distance of the two distributions, in nanoseconds: the mean distance by which durations of one side
 * must be moved to get the distribution of the other side. The numbers of durations are scaled to be equal.
 */
moved_ns: number,
/**
 * Changes of quantiles (shift function). Only quantiles that are positive in all units are included. Empty if
 * there are too few units of evidence.
 */
shifts: Array<QuantileShift>,
/**
 * Units of evidence of the shift function.
 */
shift_unit: ShiftUnit,
/**
 * Number of units before the change.
 */
units_before: number,
/**
 * Number of units after the change.
 */
units_after: number, };

/**
 * A fact, driver or kind of events that differs.
 */
export type BesidesRow = {
/**
 * Name of the fact, driver or kind of events.
 */
name: string,
/**
 * Value before the change.
 */
before: string,
/**
 * Value after the change.
 */
after: string, };

/**
 * Functions, or the callers and callees of one function.
 */
export type ButterflyAnswer = {
/**
 * Weight of all rows.
 */
total: number,
/**
 * Share of the weight that belongs to rows with a stack, from 0 to 1.
 */
known: number,
/**
 * Number of functions before the limit is applied.
 */
functions_total: number,
/**
 * Functions with their weights; absent if the request names a function.
 */
functions?: Array<FunctionWeight>,
/**
 * Names of the functions in `callers` and `callees`, which refer to them by index.
 */
frames?: Array<string>,
/**
 * Tree of the callers. Its root is the function.
 */
callers?: Nodes,
/**
 * Tree of the callees. Its root is the function.
 */
callees?: Nodes,
/**
 * Unit of the weights.
 */
unit: string, };

/**
 * Order of functions by descending weight.
 */
export type ButterflyOrder = "total" | "self";

/**
 * Request for all functions, or for the callers and callees of one function.
 */
export type ButterflyRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Name of the column of stacks.
 */
stack: string,
/**
 * Name of the column with the weights, which must not be negative, or `rows` to count rows.
 */
weight: string,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Function whose callers and callees are requested; all functions if absent.
 */
frame?: string | null,
/**
 * Order of the functions.
 */
order?: ButterflyOrder,
/**
 * Maximum number of functions, up to 10 000; 1000 if absent.
 */
first?: number | null,
/**
 * Minimum weight of a returned call, as a share of the total weight; 0.0005 if absent.
 */
least_share?: number | null, };

/**
 * A value in an answer.
 */
export type Cell = null | boolean | number | string | {
/**
 * Number of different values. All unknown values count as one value.
 */
different: number, };

/**
 * A column of a table.
 */
export type ColumnInfo = {
/**
 * Name of the column.
 */
name: string,
/**
 * Title for the user. It is the title in Windows Performance Analyzer, if WPA has this column.
 */
title: string,
/**
 * Description of the column.
 */
about: string,
/**
 * Use of the column in views.
 */
kind: ColumnKind,
/**
 * Unit of the numbers; empty if they have no unit.
 */
unit: string,
/**
 * True if the column is a key and its ids are meaningful numbers, which can be summed up and compared.
 */
numeric_key: boolean,
/**
 * Numbers that have a name, with their names.
 */
names?: { [key in number]: string }, };

/**
 * Use of a column.
 */
export type ColumnKind = "key" | "measure" | "time" | "text" | "test";

/**
 * Finding about both sides, without its evidence.
 */
export type ComparedFinding = {
/**
 * Sentence that states the change.
 */
sentence: string,
/**
 * Sentences that give the cause, the most important first.
 */
why: Array<string>,
/**
 * Uncertainties of the finding.
 */
doubts: Array<string>, };

/**
 * Flame graph of both sides.
 */
export type ComparedFlame = {
/**
 * Kind of code that ran when the samples were taken.
 */
code: SampledCode,
/**
 * Calls of both sides. The weights are CPU times after the change. The compared weights are CPU times
 * before the change.
 */
answer: FlameAnswer, };

/**
 * A row with its values on both sides. Counts and times are per `unit` of the table.
 */
export type ComparedRow = {
/**
 * Name of the row.
 */
name: string,
/**
 * Count before the change.
 */
before_count: number,
/**
 * Time before the change, in nanoseconds.
 */
before_ns: number,
/**
 * Count after the change.
 */
after_count: number,
/**
 * Time after the change, in nanoseconds.
 */
after_ns: number,
/**
 * True if the time or the mean time of the row differs between the sides.
 */
differs: boolean,
/**
 * Conclusion about the row, in words.
 */
conclusion: string, };

/**
 * Rows of one kind, in one unit.
 */
export type ComparedRows = {
/**
 * Title of the table for this kind of rows.
 */
title: string,
/**
 * Description of the times of this kind of rows.
 */
about: string,
/**
 * Word for one row of the table, for example `Module`.
 */
one: string,
/**
 * Unit of counts and times, for example `per second`.
 */
unit: string,
/**
 * True if the rows are counted by samples. Their number depends on the sampling interval.
 */
is_sampled: boolean,
/**
 * Change of the total of all rows, divided into steps.
 */
waterfall: Waterfall,
/**
 * Rows, sorted by descending change. Only the rows with the greatest changes are included.
 */
rows: Array<ComparedRow>,
/**
 * Number of rows that are left out, because the table has too many rows.
 */
omitted: number, };

/**
 * Traces of one side.
 */
export type ComparedSide = {
/**
 * Names of the traces.
 */
names: Array<string>,
/**
 * True if a trace comes from a model of Windows instead of a machine.
 */
simulated: boolean,
/**
 * Length of all recordings together, in seconds.
 */
seconds: number,
/**
 * Number of lost events in all recordings of the side.
 */
lost_events: number, };

/**
 * Comparison of two sides with its pictures.
 */
export type Comparison = {
/**
 * Side before the change.
 */
before: ComparedSide,
/**
 * Side after the change.
 */
after: ComparedSide,
/**
 * Answer of the comparison in one sentence.
 */
answer: string,
/**
 * Findings, the most important first.
 */
findings: Array<ComparedFinding>,
/**
 * Doubts about all findings.
 */
doubts: Array<string>,
/**
 * Differences between the machines and between the recordings, in addition to the measured differences.
 */
besides: Array<BesidesRow>,
/**
 * Tables of rows, one for each kind and unit. The table with the most important change is first.
 */
tables: Array<ComparedRows>,
/**
 * Differential flame graphs of the stacks of both sides, one for each kind of code.
 */
flames: Array<ComparedFlame>,
/**
 * Distributions of durations on both sides.
 */
histograms: Array<BackToBack>,
/**
 * Use of each CPU over time, one for each kind of work.
 */
strips: Array<Strips>,
/**
 * Waits of programs for each other; `None` if a trace did not record them.
 */
waits: Waits | null, };

/**
 * Condition on one column. If several fields are set, a row must satisfy all of them.
 */
export type Condition = {
/**
 * Name of the column.
 */
column: string,
/**
 * Ids of the key. A row must have one of these ids. `null` is the id of unknown values.
 */
in?: Array<number | null>,
/**
 * Ids of the key. A row must have none of these ids. Rows with an unknown id pass unless the list
 * contains `null`.
 */
not_in?: Array<number | null>,
/**
 * Labels of the key. A row must have one of these labels.
 */
is?: Array<string>,
/**
 * Labels of the key. A row must have none of these labels. Rows with an unknown id pass.
 */
is_not?: Array<string>,
/**
 * Text that the key's label or the column's text must contain. Case is ignored. Rows with an unknown
 * value do not pass.
 */
contains?: string,
/**
 * Minimum of the number, inclusive. Rows with an unknown number do not pass.
 */
from?: number,
/**
 * Maximum of the number, exclusive. Rows with an unknown number do not pass.
 */
to?: number, };

/**
 * Lane of one CPU.
 */
export type CpuLane = {
/**
 * Number of the CPU.
 */
cpu: number,
/**
 * Runs of threads, without idle threads.
 */
runs: RunSpans,
/**
 * Deferred procedure calls and interrupt service routines.
 */
interrupts: InterruptSpans,
/**
 * Start of the time in which the trace has all events of this CPU; `null` if it is the trace's start.
 */
recorded_from_ns: number | null,
/**
 * End of the time in which the trace has all events of this CPU; `null` if it is the trace's end.
 */
recorded_until_ns: number | null,
/**
 * Times of doubtful runs. It is unknown which threads ran at these times, so `runs` does not contain
 * them.
 */
doubtful: Spans, };

/**
 * Use of one CPU.
 */
export type CpuStrip = {
/**
 * Number of the CPU.
 */
cpu: number,
/**
 * Used share of each time bucket. A share is from 0 to 1, rounded to thousandths.
 */
shares: Array<number>, };

/**
 * Use of the CPUs in one trace.
 */
export type CpuStrips = {
/**
 * Name of the trace.
 */
trace: string,
/**
 * Use of each CPU, sorted by the number of the CPU.
 */
cpus: Array<CpuStrip>,
/**
 * Number of CPUs that are left out because there are too many. They are the least used CPUs.
 */
omitted: number, };

/**
 * Work that uses CPUs.
 */
export type CpuWork = "threads" | "dpcs";

/**
 * Delay that a problem caused.
 */
export type Delay = {
/**
 * Time that a user or program waited, in nanoseconds of wall-clock time.
 */
ns: number,
/**
 * Text that names the delayed user or program and the way the delay was computed.
 */
how: string, };

/**
 * State of a thread.
 */
export type Doing = "running" | "ready" | "waiting" | "ended" | "unknown";

/**
 * Runs that the findings leave out.
 */
export type Doubtful = {
/**
 * Number of the runs.
 */
runs: number,
/**
 * Total length of the runs, in nanoseconds.
 */
cpu_ns: number, };

/**
 * Arrangement of the series of a timeline.
 */
export type Drawn = "stacked" | "lines" | "lanes";

/**
 * Durations whose distribution is compared.
 */
export type Durations = "dpc" | "ready";

/**
 * Body of an error response.
 */
export type ErrorJson = {
/**
 * Cause of the error and advice.
 */
error: string,
/**
 * Position of the error in the text of the request.
 */
place?: Place, };

/**
 * Rows that support a finding or verdict, and the query that gives the same rows.
 */
export type Evidence = {
/**
 * Title of the rows.
 */
title: string,
/**
 * Query for the rows. `laglab sql` answers the SQL of this query with the same rows and the
 * same column names.
 */
query: string,
/**
 * Rows that the view of this evidence shows in the page of `laglab open`; `None` if the view shows the rows of
 * the query. The server sends the view of a finding's evidence separately, so this field is not serialized.
 */
view?: View | null,
/**
 * Columns of the rows.
 */
columns: Array<EvidenceColumn>,
/**
 * Rows with one cell per column. A cell is `None` if its value is unknown.
 */
rows: Array<Array<EvidenceCell | null>>, };

/**
 * Value of a cell.
 */
export type EvidenceCell = number | number | boolean | string;

/**
 * A column of [`Evidence`].
 */
export type EvidenceColumn = {
/**
 * Name of the column, as in tables and queries.
 */
name: string,
/**
 * Heading of the column for human readers.
 */
label: string,
/**
 * Unit of the numbers in the column.
 */
unit: Unit, };

/**
 * Result of a theory: a problem, a warning or a fact.
 */
export type Finding = {
/**
 * Id of the theory.
 */
theory: string,
/**
 * Importance of the finding.
 */
severity: Severity,
/**
 * Sentences that give the cause, the most important first.
 */
why?: Array<string>,
/**
 * Subjects of the finding: all things that the sentence names, and the threads that it counts.
 */
subjects?: Array<Subject>,
/**
 * True if the user asked about other threads, processes or times.
 */
off_topic?: boolean,
/**
 * Delay that this finding explains, if it is known.
 */
delay?: Delay,
/**
 * Time range of the finding, in nanoseconds since the trace's start.
 */
during?: { start: number, end: number, },
/**
 * Time ranges of a delay that happened several times, in order; at most 64. Empty if it happened once.
 */
moments?: Array<{ start: number, end: number, }>,
/**
 * Rows with the numbers of the finding or verdict.
 */
evidence: Array<Evidence>,
/**
 * Other possible causes that were examined, each with its answer.
 */
weighed?: Array<Verdict>,
/**
 * Actions that avoid the delay.
 */
remedies?: Array<string>,
/**
 * Uncertainties of the finding.
 */
doubts?: Array<string>,
/**
 * Published sources of the facts that the finding uses.
 */
sources: Array<Source>,
/**
 * Sentence that says what happened: who was delayed, for how long and when.
 */
sentence: string,
/**
 * Parts of the sentence: words of this program, and names from the trace.
 */
parts: ({ words: string } | { name: string })[], };

/**
 * Explanation of a trace for the page.
 */
export type Findings = {
/**
 * Conclusion. `None` if the findings contain problems or warnings about the machine.
 */
conclusion: string | null,
/**
 * Runs in which context switches are missing.
 */
doubtful: Doubtful,
/**
 * Time range from the start of the first run of a thread on a CPU to the end of the last run, in nanoseconds
 * since the trace's start.
 */
span: { start: number, end: number, },
/**
 * Findings, the most important first. Findings in scope come before all others. Then findings are sorted by
 * severity. Among findings of the same severity, the longest delay comes first, but programs with windows come
 * before other programs with about the same delay, and short delays of programs in the background come last.
 */
findings: Array<Finding>,
/**
 * Answers of all theories about the whole trace.
 */
theories: Array<Verdict>, };

/**
 * Call tree, with the names of its frames.
 */
export type FlameAnswer = {
/**
 * Weight of all rows in the time range.
 */
total: number,
/**
 * Weight of all rows in the time range to compare with.
 */
compared_total: number | null,
/**
 * Share of the weight that belongs to rows with a stack, from 0 to 1.
 */
known: number,
/**
 * Names of frames, for example `ntoskrnl.exe!KiSwapThread`.
 */
frames: Array<string>,
/**
 * Calls of the tree.
 */
nodes: Nodes,
/**
 * Total weight of the omitted calls. A call is omitted if its weight is below the minimum share, or if
 * there are more calls than the maximum number.
 */
cut: number,
/**
 * Unit of the weights.
 */
unit: string,
/**
 * SQL query that returns the weight of each stack. SQL cannot return the tree itself, which is built
 * from these weights. In a joined flame graph, it is the query of the first trace, and `None` if there
 * is no trace.
 */
sql: string | null, };

/**
 * Request for a call tree.
 */
export type FlameRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Name of the column of stacks.
 */
stack: string,
/**
 * Name of the column with the weights, which must not be negative, or `rows` to count rows.
 */
weight: string,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * True if the tree starts with the innermost frames of stacks and continues with their callers.
 */
inverted?: boolean,
/**
 * Frames with which a stack must start to be included, outermost first. If `inverted` is true, a stack
 * must end with these frames, and they are given innermost first.
 */
root?: Array<string> | null,
/**
 * Time range to compare with. Each call then has a second weight: its weight in this time range.
 */
compare?: Range | null,
/**
 * Minimum weight of a returned call, as a share of the total weight; 0.0005 if absent.
 */
least_share?: number | null, };

/**
 * Weights of a function.
 */
export type FunctionWeight = {
/**
 * Name of the function.
 */
label: string,
/**
 * Weight of the stacks whose innermost frame is the function.
 */
self: number,
/**
 * Weight of the stacks that contain the function. A stack counts once, even if it contains the function
 * several times.
 */
total: number, };

/**
 * Graph of a view.
 */
export type Graph = {
/**
 * Kind of graph.
 */
kind: GraphKind,
/**
 * Name of the column whose values are drawn. `rows` draws the number of rows, and `time` the share of
 * time that rows last.
 */
measure?: string,
/**
 * Function that combines the values of the measure.
 */
function?: TimelineFunction,
/**
 * Key with one series or colour for each of its values.
 */
by?: string,
/**
 * Arrangement of the series of a timeline.
 */
as?: Drawn,
/**
 * Name of the column of stacks that is drawn. It must be one of the table's `stacks`.
 */
stack?: string, };

/**
 * Kind of graph.
 */
export type GraphKind = "timeline" | "heat" | "lanes" | "flame" | "histogram" | "none";

/**
 * Order of groups. Groups with equal values are ordered by id. Groups with an unknown value are last.
 */
export type GroupSort = {
/**
 * Value by which groups are ordered: `key` for their labels, `rows`, or one of the aggregates.
 */
by: string,
/**
 * True if the largest value is first.
 */
descending: boolean, };

/**
 * Heat map.
 */
export type HeatAnswer = {
/**
 * Start of the first bucket, in nanoseconds since the trace's start.
 */
start_ns: number,
/**
 * End of the last bucket, in nanoseconds since the trace's start.
 */
end_ns: number,
/**
 * Length of a bucket, in nanoseconds.
 */
bucket_ns: number,
/**
 * Number of buckets.
 */
buckets: number,
/**
 * Bounds of the classes: class `i` contains values above `bounds[i]`, up to and including
 * `bounds[i + 1]`.
 */
bounds: Array<number>,
/**
 * Numbers of values: a list for each time bucket, with a number for each class.
 */
counts: Array<Array<number>>,
/**
 * Number of values that are larger than all classes.
 */
above: number,
/**
 * Number of values that are smaller than all classes. They are usually zeros.
 */
below: number,
/**
 * Unit of the values.
 */
unit: string,
/**
 * SQL query that returns the same numbers.
 */
sql: string, };

/**
 * Request for a heat map.
 */
export type HeatRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Name of the column of numbers.
 */
value: string,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Number of time buckets, 1 to 4000.
 */
buckets: number,
/**
 * Maximum number of classes of values, 1 to 256.
 */
rows: number,
/**
 * Smallest and largest value that the classes cover; the smallest and largest value of the rows if
 * absent.
 */
values?: Range | null, };

/**
 * Histogram.
 */
export type HistogramAnswer = {
/**
 * Bounds of the classes: class `i` contains values above `bounds[i]`, up to and including
 * `bounds[i + 1]`.
 */
bounds: Array<number>,
/**
 * Series, sorted by descending number of values.
 */
series: Array<HistogramSeries>,
/**
 * Number of groups that have no series.
 */
rest: number,
/**
 * Unit of the values.
 */
unit: string,
/**
 * SQL query that returns the same numbers.
 */
sql: string, };

/**
 * Request for a histogram.
 */
export type HistogramRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Name of the column of numbers.
 */
value: string,
/**
 * Key with one series for each of its values; without a key, there is one series.
 */
by?: string | null,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Maximum number of classes of values, 1 to 256; 60 if absent.
 */
classes?: number | null,
/**
 * Maximum number of series, 1 to 64; 8 if absent. The groups with the most values get a series.
 */
first?: number | null,
/**
 * Smallest and largest value that the classes cover; the smallest and largest value of the rows if
 * absent.
 */
values?: Range | null, };

/**
 * Distribution of the values of one group.
 */
export type HistogramSeries = {
/**
 * Id of the group.
 */
id: number | null,
/**
 * Label of the group.
 */
label: string,
/**
 * Number of values in each class.
 */
counts: Array<number>,
/**
 * Number of values that are larger than all classes.
 */
above: number,
/**
 * Number of values that are smaller than all classes. They are usually zeros.
 */
below: number, };

/**
 * Interrupts, stored as columns.
 */
export type InterruptSpans = {
/**
 * Start of each interrupt.
 */
start: Array<number>,
/**
 * End of each interrupt.
 */
end: Array<number>,
/**
 * Kind of each interrupt: the text in the table `interrupts`.
 */
kind: Array<string>,
/**
 * Image of each interrupt routine: its row in `images`.
 */
image: Array<number | null>,
/**
 * Share of the time from `start` to `end` in which interrupt routines ran, from 0 to 1. The share is 1 if the
 * interrupts are exact.
 */
busy: Array<number>, };

/**
 * Names of the columns with the start and the end of rows.
 */
export type IntervalInfo = {
/**
 * Column with the first nanosecond of a row.
 */
start: string,
/**
 * Column with the end of a row: the first nanosecond after it.
 */
end: string, };

/**
 * Description of a column for JavaScript.
 */
export type JsonColumn = { name: string,
/**
 * Data type, as in SQL. An integer that JavaScript cannot represent exactly is sent as text.
 */
type: string,
/**
 * Unit of the values: `ns`, `bytes`, or empty.
 */
unit: string, };

/**
 * Answer of a trace to the question of a theory.
 */
export type Judgement = "for" | "against" | "not_recorded";

/**
 * Labels of ids, which are rows of tables.
 */
export type LaneLabels = {
/**
 * Labels of processes.
 */
process: { [key in number]: string },
/**
 * Labels of threads.
 */
thread: { [key in number]: string },
/**
 * Labels of modules.
 */
image: { [key in number]: string }, };

/**
 * Lanes of CPUs.
 */
export type LanesAnswer = {
/**
 * Start of the time range, in nanoseconds since the trace's start.
 */
start_ns: number,
/**
 * End of the time range, in nanoseconds since the trace's start.
 */
end_ns: number,
/**
 * Lanes, in the order of CPU numbers.
 */
cpus: Array<CpuLane>,
/**
 * Labels of the ids in lanes and wakes.
 */
labels: LaneLabels,
/**
 * Wakes that led to the returned runs; empty if `exact` is false.
 */
wakes: Array<Wake>,
/**
 * True if `runs` contains actual runs, cut to the time range. If false, each entry of `runs` is one pixel wide and
 * shows the process that ran longest during this pixel.
 */
exact: boolean,
/**
 * True if `interrupts` contains actual interrupts, cut to the time range. If false, each entry of `interrupts` is
 * one pixel wide and shows the kind of interrupt that ran longest during this pixel.
 */
interrupts_exact: boolean,
/**
 * Number of CPUs that are omitted because there are too many.
 */
left_out: number, };

/**
 * Request for the lanes of CPUs.
 */
export type LanesRequest = {
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Width of the lanes in pixels, 1 to 4000.
 */
width: number,
/**
 * Numbers of the requested CPUs; all CPUs if absent.
 */
cpus?: Array<number> | null, };

/**
 * Step of the chain that led to a run.
 */
export type Link = {
/**
 * Thread of the step.
 */
thread: Named,
/**
 * Start, in nanoseconds since the trace's start.
 */
from_ns: number,
/**
 * End, in nanoseconds since the trace's start.
 */
to_ns: number,
/**
 * Text about the activity of the thread during the step and about the end of its wait.
 */
why: string,
/**
 * CPU of the thread's run in the step.
 */
cpu: number, };

/**
 * A thread and its process.
 */
export type Named = {
/**
 * Id of the thread.
 */
id: number,
/**
 * Row of the thread in the table `threads`.
 */
row: number | null,
/**
 * Name that the program gave to the thread.
 */
name: string | null,
/**
 * Name and id of the thread's process.
 */
process: string | null, };

/**
 * Calls, stored as columns. They are in depth-first order, so a call follows its caller.
 */
export type Nodes = {
/**
 * Index of the caller in these columns; `null` for outermost calls.
 */
parent: Array<number | null>,
/**
 * Index of the frame's name.
 */
frame: Array<number>,
/**
 * Weight of the call without its callees.
 */
self: Array<number>,
/**
 * Weight of the call with its callees.
 */
total: Array<number>,
/**
 * Weights of the calls with their callees, in the time range to compare with.
 */
compared: Array<number> | null, };

/**
 * Strip of small graphs at the top of the page.
 */
export type Overview = { graphs: Array<Preset>,
/**
 * True if all graphs are present. Otherwise, more tables are being made, and the page should request
 * again.
 */
complete: boolean, };

/**
 * View that the user saved under a name.
 */
export type OwnPreset = { name: string, view: View, };

/**
 * Groups of one level.
 */
export type PivotAnswer = {
/**
 * Number of rows in all groups, including the groups that do not match `search`.
 */
rows: number,
/**
 * Number of groups that match `search`.
 */
groups_total: number,
/**
 * Aggregates of all rows that `rows` counts.
 */
totals: Array<Cell>,
/**
 * Groups that were requested with `offset` and `first`.
 */
groups: Array<PivotGroup>,
/**
 * True if percentiles are exact. If false, percentiles of groups with more than some thousand rows have
 * an error of up to 1 %.
 */
exact: boolean,
/**
 * SQL query that returns the same numbers.
 */
sql: string, };

/**
 * A group of rows.
 */
export type PivotGroup = {
/**
 * Id of the group.
 */
id: number | null,
/**
 * Label of the group.
 */
label: string,
/**
 * Number of rows.
 */
rows: number,
/**
 * Values of the aggregates, in the order of the request.
 */
values: Array<Cell>,
/**
 * True if the group belongs to the last key, so it cannot be expanded.
 */
leaf: boolean, };

/**
 * Request for the groups in one level of a view's tree.
 */
export type PivotRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Keys left of the golden bar, outermost first. Without keys, the answer contains only totals.
 */
keys?: Array<string>,
/**
 * Ids of the expanded groups, outermost first. The answer contains the groups of the next key.
 */
path?: Array<number | null>,
/**
 * Aggregates of each group: `rows`, or `COLUMN:` followed by `sum`, `count`, `mean`, `min`, `max`,
 * `p50`, `p90`, `p95`, `p99` or `p999`. An aggregate can also be the name of a key. Its cell contains
 * the value of this key, if all rows of the group have the same value.
 */
aggregates?: Array<string>,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Order of the groups; if absent, by descending number of rows.
 */
sort?: GroupSort | null,
/**
 * Number of groups to skip.
 */
offset?: number,
/**
 * Maximum number of returned groups, up to 1000.
 */
first: number,
/**
 * Text that the label of each group must contain. Case is ignored.
 */
search?: string | null, };

/**
 * Line and column in a text. Both are counted from 1.
 */
export type Place = { line: number, column: number, };

/**
 * A view with a name.
 */
export type Preset = {
/**
 * Name of the preset.
 */
name: string,
/**
 * Group in the list of presets, such as `CPU`, `Interrupts`, `Disk`, `Network` or `System`.
 */
group: string,
/**
 * View that the preset shows.
 */
view: View, };

/**
 * Progress of long work. `phase` is `null` if no work is in progress.
 */
export type Progress = { phase: string | null, done: number, of: number, };

/**
 * Change of one quantile.
 */
export type QuantileShift = {
/**
 * Share of the durations that are at most as long as the quantile.
 */
share: number,
/**
 * Quantile before the change: the median over the units of evidence, in nanoseconds.
 */
before_ns: number,
/**
 * Quantile after the change: the median over the units of evidence, in nanoseconds.
 */
after_ns: number,
/**
 * Quantile after the change divided by the quantile before the change.
 */
ratio: number,
/**
 * Lower bound of the ratio, with 95 % confidence.
 */
low: number,
/**
 * Upper bound of the ratio, with 95 % confidence.
 */
high: number,
/**
 * True if chance hardly explains the change of this quantile.
 */
differs: boolean, };

/**
 * A run of the thread.
 */
export type Ran = {
/**
 * Number of the CPU.
 */
cpu: number,
/**
 * Start, in nanoseconds since the trace's start.
 */
start_ns: number,
/**
 * End, in nanoseconds since the trace's start.
 */
end_ns: number,
/**
 * Priority of the thread at the start of the run.
 */
priority: number | null,
/**
 * Rank of the thread. The thread has a rank at the end of the run and a rank at the last switch-out
 * before the run; this is the worse of the two.
 */
rank: number | null, };

/**
 * Answer to the request for the graph of a view.
 */
export type ReportAnswer = { "timeline": TimelineAnswer } | { "heat": HeatAnswer } | { "histogram": HistogramAnswer } | { "flame": FlameAnswer } | { "lanes": LanesAnswer };

/**
 * Pictures of a report, and data that they share.
 */
export type ReportData = {
/**
 * Time range of the graphs, in nanoseconds since the trace's start; `None` if there is no graph over time.
 */
range: Range | null,
/**
 * Number of CPUs; `None` if it is unknown.
 */
cpus: number | null,
/**
 * True if the limits of Microsoft for DPCs and ISRs hold.
 */
has_limits: boolean,
/**
 * Findings that graphs shade.
 */
findings: Array<ReportFinding>,
/**
 * Pictures, in the order of their places.
 */
pictures: Array<ReportPicture>, };

/**
 * Finding with a time range.
 */
export type ReportFinding = {
/**
 * Number of the finding on the page.
 */
number: number, severity: Severity,
/**
 * Start and end, in nanoseconds since the trace's start.
 */
range: Range, sentence: string, };

/**
 * View on screen, with the choices that the user made in it.
 */
export type ReportPanel = { view: View,
/**
 * Title that the user gave the view.
 */
title?: string | null,
/**
 * Groups whose series the user has hidden.
 */
hidden?: Array<number | null>,
/**
 * True if the user has hidden the series of all groups without their own line.
 */
rest_hidden?: boolean,
/**
 * Visible part of the view: the graph or the table. `None` if both are visible.
 */
show?: ReportPart | null,
/**
 * Selected time range, used by tables, flame graphs and histograms. `None` for the range of the view.
 */
selection?: Range | null,
/**
 * True to draw a flame graph with callers and callees exchanged.
 */
inverted?: boolean,
/**
 * Time range with which the flame graph is compared.
 */
compare?: Range | null,
/**
 * True if the flame graph is compared with another trace.
 */
other?: boolean, };

/**
 * Visible part of a view.
 */
export type ReportPart = "graph" | "table";

/**
 * Graph of a view, as the script of the page reads it.
 */
export type ReportPicture = { view: View, title: string,
/**
 * Description of the drawn columns.
 */
table: TableInfo | null,
/**
 * Name of the column or measure whose values are drawn.
 */
value: string,
/**
 * Groups whose series are hidden.
 */
hidden: Array<number | null>,
/**
 * True if the series of all groups without their own line is hidden.
 */
rest_hidden: boolean,
/**
 * True if a flame graph has its callers and callees exchanged.
 */
inverted: boolean,
/**
 * Time range of a flame graph or histogram; `None` for the whole trace.
 */
range: Range | null,
/**
 * Time range with which a flame graph is compared.
 */
compare: Range | null, answer: ReportAnswer, };

/**
 * Request for an HTML report.
 */
export type ReportRequest = { trace: number,
/**
 * Views on screen, which the report includes.
 */
panels?: Array<ReportPanel>, title?: string | null, };

/**
 * Combined values of all groups without their own series.
 */
export type RestSeries = {
/**
 * Number of these groups.
 */
count: number,
/**
 * Value of these groups for the whole time range.
 */
total: number | null,
/**
 * Value of these groups in each bucket.
 */
values: Array<number | null>, };

/**
 * Description of a returned column.
 */
export type RowColumn = {
/**
 * Name of the column.
 */
name: string,
/**
 * Title for the user.
 */
title: string,
/**
 * Use of the column in views.
 */
kind: ColumnKind,
/**
 * Unit of the numbers; empty if they have no unit.
 */
unit: string, };

/**
 * A page of rows.
 */
export type RowsAnswer = {
/**
 * Number of rows that satisfy the conditions, on all pages.
 */
rows: number,
/**
 * Description of the returned columns.
 */
columns: Array<RowColumn>,
/**
 * Values: a list for each row, with a value for each column. Keys have their labels as values.
 */
values: Array<Array<Cell>>,
/**
 * SQL query that returns the same rows.
 */
sql: string, };

/**
 * Request for single rows.
 */
export type RowsRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Names of the columns to return.
 */
columns: Array<string>,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Order of the rows; the order of the table if absent.
 */
sort?: Sort | null,
/**
 * Number of rows to skip.
 */
offset?: number,
/**
 * Maximum number of returned rows, up to 1000.
 */
first: number, };

/**
 * Runs of threads, stored as columns.
 */
export type RunSpans = {
/**
 * Start of each run.
 */
start: Array<number>,
/**
 * End of each run.
 */
end: Array<number>,
/**
 * Process of each run: its row in `processes`.
 */
process: Array<number | null>,
/**
 * Thread of each run: its row in `threads`; `null` if the runs are not exact.
 */
thread: Array<number | null>,
/**
 * Share of the time from `start` to `end` in which the CPU ran threads other than idle threads, from 0 to 1. The
 * share is 1 if the runs are exact.
 */
busy: Array<number>, };

/**
 * Distribution of the values of both sides.
 */
export type RunsHistogram = {
/**
 * Minimum of the values, where the first bin starts.
 */
low: number,
/**
 * End of the last bin. The last bin also counts all greater values.
 */
high: number,
/**
 * Maximum of the values.
 */
greatest: number,
/**
 * True if the bins are equally wide on a logarithmic axis.
 */
is_logarithmic: boolean,
/**
 * Share of the values in each bin, before and after the change.
 */
shares: [Array<number>, Array<number>], };

/**
 * Numbers for the pictures of one comparison.
 */
export type RunsPicture = {
/**
 * Unit of the values.
 */
unit: "nanoseconds" | "other",
/**
 * Relation between the runs of both sides.
 */
design: "paired" | "unpaired",
/**
 * Scale of the changes in `shifts`.
 */
scale: "ratio" | "difference",
/**
 * True if the measurement could end early. The bounds of the changes are then too narrow.
 */
has_looks: boolean,
/**
 * Change of each quantile for which the runs have enough samples. Empty if each run has one value.
 */
shifts: Array<RunsShift>,
/**
 * Median of each run before and after the change, in order. `None` for a run without values.
 */
runs: [Array<number | null>, Array<number | null>],
/**
 * Distribution of all values. `None` if there are no values, or if all values are equal.
 */
histogram: RunsHistogram | null, };

/**
 * Change of one quantile, with its 95 % confidence interval.
 */
export type RunsShift = {
/**
 * Share of samples that do not exceed the quantile.
 */
share: number,
/**
 * Estimated change.
 */
change: number,
/**
 * Lower bound of the change.
 */
low: number,
/**
 * Upper bound of the change.
 */
high: number,
/**
 * False if chance may explain the change.
 */
differs: boolean, };

/**
 * Kind of code that runs on a CPU when a sample is taken.
 */
export type SampledCode = "threads" | "dpcs" | "isrs";

/**
 * Open traces and features of this server.
 */
export type Session = { version: string,
/**
 * True if the server can run SQL queries.
 */
sql: boolean,
/**
 * True if the page compares the first trace with the second one.
 */
comparison: boolean,
/**
 * View with which the page starts: the content of the file of `--view`; `None` if the user named none.
 */
view: unknown, traces: Array<TraceFacts>, };

/**
 * Importance of a finding.
 */
export type Severity = "information" | "warning" | "problem";

/**
 * Unit of evidence of a shift function.
 */
export type ShiftUnit = "blocks" | "traces";

/**
 * Order of rows or groups.
 */
export type Sort = {
/**
 * Name of the column, or the aggregate.
 */
column: string,
/**
 * True if the largest value is first.
 */
descending: boolean, };

/**
 * Source of a fact.
 */
export type Source = {
/**
 * Title of the source.
 */
title: string,
/**
 * Web address (URL) of the source; `None` for books and for measurements of this project.
 */
url?: string | null, };

/**
 * Time ranges, stored as columns. If the gap between two ranges is smaller than a pixel, they are merged.
 */
export type Spans = {
/**
 * Start of each time range.
 */
start: Array<number>,
/**
 * End of each time range.
 */
end: Array<number>, };

/**
 * Rows that answer a question.
 */
export type SqlAnswer = { columns: Array<JsonColumn>, rows: unknown[][],
/**
 * True if the query has more rows than this answer.
 */
more: boolean, took_ms: number, };

/**
 * Tables and views that can be queried.
 */
export type SqlCatalogue = { tables: Array<SqlTable>, functions: Array<SqlFunction>, };

/**
 * Function that queries can call.
 */
export type SqlFunction = { name: string, signature: string, about: string, };

/**
 * Request to run SQL statements.
 */
export type SqlRequest = {
/**
 * Ids of the traces to query. `None` for all traces.
 */
traces?: Array<number> | null,
/**
 * Statements to run. The answer has the rows of the last statement with a result.
 */
query: string,
/**
 * Maximum number of rows to return.
 */
first?: number | null, };

/**
 * Table or view.
 */
export type SqlTable = { name: string, about: string, view: boolean, columns: Array<SqlTableColumn>, };

/**
 * Column of a table or view.
 */
export type SqlTableColumn = { name: string, type: string, about: string | null, };

/**
 * Step of a waterfall: the change of one row.
 */
export type Step = {
/**
 * Name of the row.
 */
name: string,
/**
 * Change of the time of the row, in nanoseconds per unit.
 */
ns: number, };

/**
 * Description of a moment of a thread.
 */
export type Story = {
/**
 * Described thread.
 */
thread: Named,
/**
 * Moment, in nanoseconds since the trace's start.
 */
at_ns: number,
/**
 * State of the thread at the moment.
 */
kind: Doing,
/**
 * Run of the thread at the moment. If the thread was not running, it is the thread's next run. It is `None` if the
 * thread does not run again before the trace ends.
 */
run: Ran | null,
/**
 * Events of the thread, in order of time.
 */
story: Array<StoryEvent>,
/**
 * Possible causes of the wait for a CPU, each with its verdict.
 */
theories: Array<Verdict>,
/**
 * Findings about the wait for a CPU.
 */
findings: Array<Finding>,
/**
 * Chain of events that led to the run or, if there is no run, to the event that readied the thread. The latest
 * step comes first. The chain goes back to the thread's last switch-out before the run.
 */
chain: Array<Link>,
/**
 * True if the chain goes further back than `chain`.
 */
is_chain_cut: boolean,
/**
 * Reasons why the story may be wrong.
 */
doubts: Array<string>, };

/**
 * Event in the description of a thread. Fields that do not apply to its kind are `None`.
 */
export type StoryEvent = {
/**
 * Kind of the event.
 */
kind: StoryEventKind,
/**
 * Time of the event, or its start if it lasted for some time, in nanoseconds since the trace's
 * start.
 */
at_ns: number,
/**
 * End of the event, if it lasted for some time.
 */
until_ns: number | null,
/**
 * Sentence that describes the event.
 */
sentence: string,
/**
 * Number of the CPU.
 */
cpu: number | null,
/**
 * Other thread that caused the event.
 */
thread: Named | null,
/**
 * State that the thread entered.
 */
state: string | null,
/**
 * Wait reason of the thread in this state.
 */
wait_reason: string | null,
/**
 * Priority of the thread.
 */
priority: number | null,
/**
 * Rank of the thread.
 */
rank: number | null,
/**
 * Call stack of the thread, with the innermost function first.
 */
stack: Array<string>,
/**
 * Evidence with details of the event.
 */
evidence: Evidence | null, };

/**
 * Kind of an [`Event`].
 */
export type StoryEventKind = "switched_out" | "readied" | "waited_behind" | "ran";

/**
 * Use of the CPUs in the traces of both sides. Time buckets have the same length in all traces, and times count from
 * the start of each recording.
 */
export type Strips = {
/**
 * Kind of work that used the CPUs.
 */
work: CpuWork,
/**
 * Length of a time bucket, in nanoseconds.
 */
bucket_ns: number,
/**
 * Use of the CPUs in each trace before the change.
 */
before: Array<CpuStrips>,
/**
 * Use of the CPUs in each trace after the change.
 */
after: Array<CpuStrips>,
/**
 * Number of traces that are left out, because there are too many.
 */
omitted: number, };

/**
 * Thing that a finding is about. Unknown fields are `None`.
 */
export type Subject = { "kind": "thread",
/**
 * Id of the thread. Other threads may have had the same id before and after it.
 */
id: number,
/**
 * Row of the thread in the table `threads`.
 */
row?: number,
/**
 * Row of the thread's process in the table `processes`.
 */
process_row?: number, } | { "kind": "process",
/**
 * Id of the process.
 */
id?: number,
/**
 * Row of the process in the table `processes`.
 */
row?: number,
/**
 * File name of the process's image.
 */
name?: string, } | { "kind": "cpu",
/**
 * Number of the CPU.
 */
number: number, } | { "kind": "disk",
/**
 * Number of the disk.
 */
number: number, } | { "kind": "module",
/**
 * File name of the module.
 */
name: string, } | { "kind": "routine",
/**
 * Name of the routine, with its module.
 */
name: string, };

/**
 * A table that views can show.
 */
export type TableInfo = {
/**
 * Name of the table in SQL.
 */
name: string,
/**
 * Title for the user.
 */
title: string,
/**
 * Description of the table's rows.
 */
about: string,
/**
 * Number of rows; `null` until the table is built.
 */
rows: number | null,
/**
 * True if the table has rows; `null` until the table is built.
 */
recorded: boolean | null,
/**
 * Time of the last row, in nanoseconds since the trace's start; `null` until the table is built.
 */
last_ns: number | null,
/**
 * Events to record if the table has no rows; empty if it is normal that the table has no rows.
 */
record: string,
/**
 * Name of the column of times by which the rows are sorted.
 */
time: string,
/**
 * Columns with the start and the end of rows; `null` if rows are single moments.
 */
interval: IntervalInfo | null,
/**
 * Columns of the table, except columns of stacks.
 */
columns: Array<ColumnInfo>,
/**
 * Names of the columns of stacks.
 */
stacks: Array<string>, };

/**
 * Timeline.
 */
export type TimelineAnswer = {
/**
 * Start of the first bucket, in nanoseconds since the trace's start.
 */
start_ns: number,
/**
 * End of the last bucket, in nanoseconds since the trace's start. The last bucket may be shorter than
 * the others.
 */
end_ns: number,
/**
 * Length of a bucket, in nanoseconds.
 */
bucket_ns: number,
/**
 * Number of buckets.
 */
buckets: number,
/**
 * Series, sorted by descending total. The series of unknown values is last.
 */
series: Array<TimelineSeries>,
/**
 * Combined values of the groups without their own series.
 */
rest: RestSeries | null,
/**
 * Unit of the values.
 */
unit: string,
/**
 * True if the values are times that are divided among the buckets that they cover. A value that equals
 * the length of the bucket then means that one row lasted during the whole bucket.
 */
spread: boolean,
/**
 * SQL query that returns the same numbers.
 */
sql: string, };

/**
 * Function that combines the numbers in a time bucket.
 */
export type TimelineFunction = "sum" | "max" | "min" | "mean" | "count";

/**
 * Request for a timeline.
 */
export type TimelineRequest = {
/**
 * Name of the table.
 */
table: string,
/**
 * Key with one series for each of its values; without a key, there is one series.
 */
by?: string | null,
/**
 * Name of a column of numbers. `rows` (the default) is the number of rows, and `time` the nanoseconds
 * that rows last. Times that rows last and sums of durations are divided among the time buckets that
 * they cover. Each other number is counted in the bucket with its row's time, by which the table is sorted.
 */
measure?: string | null,
/**
 * Function that combines the numbers in a time bucket; the sum if absent.
 */
function?: TimelineFunction | null,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Number of time buckets, 1 to 4000.
 */
buckets: number,
/**
 * Maximum number of groups with their own series, up to 64. The groups with the largest totals get their
 * own series.
 */
first: number, };

/**
 * Series of a timeline.
 */
export type TimelineSeries = {
/**
 * Id of the group.
 */
id: number | null,
/**
 * Label of the group.
 */
label: string,
/**
 * Value for the whole time range.
 */
total: number | null,
/**
 * Value in each bucket. In a bucket without numbers, sums and counts are 0 and other values are `null`.
 */
values: Array<number | null>, };

/**
 * Facts about a trace for the header of the page.
 */
export type TraceFacts = { id: number, name: string, files: Array<string>,
/**
 * True if the trace comes from a model of Windows instead of a machine.
 */
simulated: boolean,
/**
 * Operating system and its version, for traces with events.
 */
system: string | null, machine: string | null, cpu: string | null, cpus: number | null, start_utc: string | null,
/**
 * Time from the first to the last event. Until the events are read, it is the length of the session.
 */
duration_ns: number | null,
/**
 * Start and end of `duration_ns`, in nanoseconds since the trace's start.
 */
range: Range | null, events: number | null, size_bytes: number | null,
/**
 * Warnings about the quality of the trace.
 */
warnings: Array<string>,
/**
 * True if the events were read. Until then, the facts come from headers only.
 */
complete: boolean,
/**
 * Name of the only table of packet captures or measured samples, which have no events. `None` for other
 * traces.
 */
only: string | null, };

/**
 * Unit of a number.
 */
export type Unit = "none" | "count" | "duration" | "moment" | "bytes" | "bits_per_second" | "percent";

/**
 * Answer of one theory, about the whole trace or about one wait.
 */
export type Verdict = {
/**
 * Id of the theory.
 */
theory: string,
/**
 * Name of the cause in lists, such as "higher priority".
 */
name: string,
/**
 * Question of the theory.
 */
question: string,
/**
 * Answer to the question.
 */
judgement: Judgement,
/**
 * Reason for the answer.
 */
because: string,
/**
 * Part of the wait that this cause explains, in nanoseconds; `None` if the verdict is not
 * about a wait or the part is unknown.
 */
explains_ns?: number,
/**
 * Rows with the numbers of the finding or verdict.
 */
evidence?: Array<Evidence>,
/**
 * Data to record for an answer, if the trace lacks them.
 */
record?: string, };

/**
 * A table with its columns, graph and filter. It is a small document that can be stored, sent and compared.
 */
export type View = {
/**
 * Name of the table.
 */
table: string,
/**
 * Columns in their order. [`View::BAR`] represents the golden bar. Keys left of the bar group the rows. Aggregates
 * right of the bar (such as `cpu_ns:sum` or `rows`) are computed for each group.
 */
columns: Array<string>,
/**
 * Graph above the table.
 */
graph: Graph,
/**
 * Time range `[start, end]` in nanoseconds; the whole trace if absent.
 */
range?: Range | null,
/**
 * Conditions that rows must satisfy.
 */
filter?: Array<Condition>,
/**
 * Order of the groups.
 */
sort?: Sort | null, };

/**
 * Waits of the program `waiting` that threads of the program `waker` ended, or that DPCs ended. Times and numbers are
 * per second of the recordings.
 */
export type WaitEdge = {
/**
 * Program that waited.
 */
waiting: string,
/**
 * Program whose thread ended the waits; `None` for DPCs of devices and timers.
 */
waker: string | null,
/**
 * Time of the waits before the change, in nanoseconds.
 */
before_ns: number,
/**
 * Number of waits before the change.
 */
before_count: number,
/**
 * Time of the waits after the change, in nanoseconds.
 */
after_ns: number,
/**
 * Number of waits after the change.
 */
after_count: number, };

/**
 * Thread and time of a request about a wait.
 */
export type WaitRequest = {
/**
 * Row of the thread in the table `threads`.
 */
thread_row?: number | null,
/**
 * Id of the thread. It is used if the row is unknown.
 */
thread_id?: number | null,
/**
 * Time in nanoseconds since the trace's start.
 */
at_ns: number, };

/**
 * Waits of programs for each other. Waits of threads that had nothing to do are left out.
 */
export type Waits = {
/**
 * Pairs of programs. The greatest change is first.
 */
edges: Array<WaitEdge>,
/**
 * Number of pairs with smaller changes that are left out.
 */
omitted: number, };

/**
 * Wake: an event in which one thread readied another thread, which then ran.
 */
export type Wake = {
/**
 * CPU on which the thread was readied.
 */
from_cpu: number,
/**
 * Time at which the thread was readied.
 */
at_ns: number,
/**
 * CPU on which the thread ran.
 */
to_cpu: number,
/**
 * Start of the run.
 */
run_start_ns: number,
/**
 * Thread that readied the other thread: its row in `threads`.
 */
readying_thread: number | null,
/**
 * True if a deferred procedure call readied the thread. The call had interrupted `readying_thread`.
 */
by_dpc: boolean,
/**
 * Thread that was readied and ran: its row in `threads`.
 */
thread: number | null, };

/**
 * Change of a total, divided into steps. The total before the change plus all steps is the total after the
 * change.
 */
export type Waterfall = {
/**
 * Total time of all rows before the change, in nanoseconds per unit.
 */
before_ns: number,
/**
 * Steps of the rows with the greatest changes, the greatest change first.
 */
steps: Array<Step>,
/**
 * Number of the other rows, which have no separate step.
 */
others: number,
/**
 * Total change of the other rows, in nanoseconds per unit.
 */
others_ns: number,
/**
 * Total time of all rows after the change, in nanoseconds per unit.
 */
after_ns: number, };
