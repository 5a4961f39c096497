// What the server answers to `heat`: how values are spread over time.

/** Counts by slice of time and class of value. */
export interface HeatAnswer {
  start_ns: number;
  end_ns: number;
  bucket_ns: number;
  buckets: number;
  /** Class `i` holds values above `bounds[i]` and up to `bounds[i + 1]`; they rise by equal factors. */
  bounds: number[];
  /** By slice, then by class. */
  counts: number[][];
  /** How many are above all classes, and below. */
  above: number;
  below: number;
  unit: string;
  sql: string | null;
}

/** A line at a value. */
export interface Line {
  at: number;
  label: string;
}

/** What is chosen: times, and values that are at least `from` and less than `to`, as filters have it. */
export interface Chosen {
  range: [from_ns: number, to_ns: number];
  from: number;
  to: number;
}
