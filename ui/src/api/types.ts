// What the server is asked and what it answers. Times are nanoseconds since the trace's start;
// `null` is what is not known.

/** From, to: nanoseconds since the trace's start. */
export type Range = [from: number, to: number];

/** Id of a key's value: a small number of the trace, `null` where the value is not known. */
export type Id = number | null;

export interface Trace {
  id: number;
  name: string;
  files: string[];
  simulated: boolean;
  windows: string | null;
  machine: string | null;
  cpu: string | null;
  cpus: number | null;
  start_utc: string | null;
  duration_ns: number | null;
  /** From its first event to its last. */
  range?: Range | null;
  events: number | null;
  size_bytes: number | null;
  /** Not yet of a large trace: only its headers were read. */
  complete?: boolean;
  /** The one table that its files fill, if they hold no events: captured packets, measured samples. */
  only?: string | null;
  warnings: string[];
}

export interface Session {
  version: string;
  sql: boolean;
  traces: Trace[];
}

export interface Column {
  name: string;
  title: string;
  about: string;
  kind: "key" | "measure" | "time" | "text" | "test";
  unit: string;
  /** The key's ids are in the order of numbers: processors, priorities, ranks. */
  numeric_key: boolean;
  /** How its numbers are called, where they have names. */
  names?: Record<number, string>;
}

export interface Table {
  name: string;
  title: string;
  about: string;
  rows: number | null;
  recorded: boolean | null;
  record: string;
  time: string;
  interval: { start: string; end: string } | null;
  columns: Column[];
  stacks: string[];
  /** When its last row was. */
  last_ns?: number | null;
}

/** What rows must be, by one column; where it says several things, all must hold. */
export interface Filter {
  column: string;
  /** A key's id is one of these, or none of these. */
  in?: Id[];
  not_in?: Id[];
  /** A key's label is one of these, or none of these: the same in every trace and table. */
  is?: string[];
  is_not?: string[];
  /** A label or text contains this, whatever the case. */
  contains?: string;
  /** A number is at least `from`, and less than `to`. */
  from?: number | null;
  to?: number | null;
}

export type GraphKind = "timeline" | "heat" | "lanes" | "flame" | "histogram" | "none";

export interface Graph {
  kind: GraphKind;
  measure?: string | null;
  function?: TimelineFunction | null;
  by?: string | null;
  as?: "stacked" | "lines";
  stack?: string | null;
}

export type TimelineFunction = "sum" | "max" | "min" | "mean" | "count";

/** A graph and its table, as they are saved, sent and asked for. */
export interface View {
  table: string;
  /** Keys, `"|"` (the golden bar), aggregates: `cpu_ns:sum`, `rows`. */
  columns: string[];
  graph: Graph;
  range?: Range | null;
  filter?: Filter[];
  sort?: { column: string; descending: boolean } | null;
}

export interface Preset {
  name: string;
  group?: string;
  view: View;
}

export interface TimelineRequest {
  table: string;
  by: string | null;
  measure: string | null;
  function: TimelineFunction | null;
  range: Range | null;
  filter: Filter[];
  buckets: number;
  first: number;
}

export interface Series {
  id: Id;
  label: string;
  total: number | null;
  values: (number | null)[];
}

export interface Timeline {
  start_ns: number;
  /** The last bucket may be shorter than the others. */
  end_ns: number;
  bucket_ns: number;
  buckets: number;
  series: Series[];
  rest: { count: number; total: number | null; values: (number | null)[] } | null;
  unit: string;
  /** Values are stretches of time, spread over the buckets that they cover. */
  spread: boolean;
  sql: string | null;
}

export interface PivotRequest {
  table: string;
  keys: string[];
  path: Id[];
  aggregates: string[];
  range: Range | null;
  filter: Filter[];
  sort: { by: string; descending: boolean } | null;
  offset: number;
  first: number;
}

/** A cell right of the bar: a number, a text, or how many different values a key has. */
export type Cell = number | string | boolean | null | { different: number };

export interface Group {
  id: Id;
  label: string;
  rows: number;
  values: Cell[];
  leaf: boolean;
}

export interface Pivot {
  rows: number;
  groups_total: number;
  totals: Cell[];
  groups: Group[];
  /** Whether percentiles are exact; else they are within 1 %. */
  exact?: boolean;
  sql: string | null;
}

export interface RowsRequest {
  table: string;
  columns: string[];
  range: Range | null;
  filter: Filter[];
  sort: { column: string; descending: boolean } | null;
  offset: number;
  first: number;
}

export interface Rows {
  /** How many there are in all. */
  rows: number;
  columns: { name: string; title: string; unit: string }[];
  values: Cell[][];
  sql: string | null;
}

export interface HistogramRequest {
  table: string;
  value: string;
  by: string | null;
  range: Range | null;
  filter: Filter[];
}

export interface Histogram {
  bounds: number[];
  series: { id: Id; label: string; counts: number[] }[];
  unit: string;
  sql: string | null;
}

export interface Evidence {
  title: string;
  query: string;
  columns: { name: string; label?: string; unit?: string | null }[];
  rows: Cell[][];
  view?: View | null;
}

export interface Verdict {
  theory: string;
  question: string;
  judgement: "for" | "against" | "not_recorded";
  because: string;
  explains_ns?: number | null;
  evidence?: Evidence[];
  record?: string | null;
}

export interface Finding {
  theory: string;
  severity: "problem" | "warning" | "information";
  sentence: string;
  loss: { lost_ns: number; how: string } | null;
  during: { start: number; end: number } | null;
  evidence: Evidence[];
  weighed: Verdict[];
  remedies: string[];
  doubts: string[];
  sources: string[];
}

export interface Explanation {
  findings: Finding[];
  /** What it comes to where nothing grave was found. */
  conclusion?: string | null;
  /** Runs within which switches are missing. */
  doubtful?: { runs: number; cpu_ns: number };
  theories: Verdict[];
}

export interface Overview {
  graphs: Preset[];
  /** Whether these are all. If not, more of the trace is being read. */
  complete: boolean;
}

/** A view on screen, for a report: with what the person did in it. */
export interface ReportPanel {
  view: View;
  title?: string;
  hidden: Id[];
  rest_hidden: boolean;
  show: "graph" | "table" | null;
  /** The stretch of time that tables, flame graphs and histograms tell of, if not that of the view. */
  selection: Range | null;
  inverted: boolean;
  compare: Range | null;
  /** It is compared with another trace. */
  other: boolean;
}

/** How far the making of tables is. */
export interface Progress {
  phase: string | null;
  done: number;
  of: number;
}
