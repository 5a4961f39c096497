// Requests to the server and its answers. Times are nanoseconds since the trace's start. Unknown values are
// `null`.

/** Start and end, in nanoseconds since the trace's start. */
export type Range = [from: number, to: number];

/** Id of a key's value, which is valid only in one trace; `null` if the value is unknown. */
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
  /** Time from the first event of the trace to its last event. */
  range?: Range | null;
  events: number | null;
  size_bytes: number | null;
  /** False if only the headers of a large trace have been read so far. */
  complete?: boolean;
  /** Name of the only table of a file without events, such as captured packets or measured samples. */
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
  /** True if the key's ids are numbers that have an order, such as processors, priorities or ranks. */
  numeric_key: boolean;
  /** Names of the column's numbers, if they have names. */
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
  /** Time of the last row. */
  last_ns?: number | null;
}

/** Conditions on one column. A row must satisfy all of them. */
export interface Filter {
  column: string;
  /** Ids of the key: a row must have one of `in`, and none of `not_in`. */
  in?: Id[];
  not_in?: Id[];
  /**
   * Labels of the key: a row must have one of `is`, and none of `is_not`. A value has the same label in all
   * traces and tables.
   */
  is?: string[];
  is_not?: string[];
  /** Text that the label or text must contain. Case is ignored. */
  contains?: string;
  /** Bounds of the number: it must be at least `from`, and less than `to`. */
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

/** Description of a graph with its table. It is saved, sent to other users, and sent to the server. */
export interface View {
  table: string;
  /** Keys, then `"|"` (the golden bar), then aggregates such as `cpu_ns:sum` or `rows`. */
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
  /** End of the last bucket, which may be shorter than the other buckets. */
  end_ns: number;
  bucket_ns: number;
  buckets: number;
  series: Series[];
  rest: { count: number; total: number | null; values: (number | null)[] } | null;
  unit: string;
  /** True if values are durations that are divided among the buckets that they cover. */
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

/** Cell right of the golden bar: a number, a text, a flag, or the number of different values of a key. */
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
  /** True if percentiles are exact. If false, their error is up to 1 %. */
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
  /** Number of rows that satisfy the conditions, including rows that were not requested. */
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
  delay: { ns: number; how: string } | null;
  during: { start: number; end: number } | null;
  evidence: Evidence[];
  weighed: Verdict[];
  remedies: string[];
  doubts: string[];
  sources: string[];
}

export interface Explanation {
  findings: Finding[];
  /** Conclusion if there is no serious finding. */
  conclusion?: string | null;
  /** Number and CPU time of doubtful runs, in which context switches are missing. */
  doubtful?: { runs: number; cpu_ns: number };
  theories: Verdict[];
}

export interface Overview {
  graphs: Preset[];
  /** True if these are all graphs. False while the trace is still being read, which can add graphs. */
  complete: boolean;
}

/** View of the page for a report, with its display options. */
export interface ReportPanel {
  view: View;
  title?: string;
  hidden: Id[];
  rest_hidden: boolean;
  show: "graph" | "table" | null;
  /** Time range of tables, flame graphs and histograms. `null` if it is the range of the view. */
  selection: Range | null;
  inverted: boolean;
  compare: Range | null;
  /** True if the flame graph is compared with another trace. */
  other: boolean;
}

/** Progress of building tables. */
export interface Progress {
  phase: string | null;
  done: number;
  of: number;
}
