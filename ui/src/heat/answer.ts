// Answer to the request `heat`: the distribution of values over time.

/** Numbers of values by time bucket and class. */
export interface HeatAnswer {
  start_ns: number;
  end_ns: number;
  bucket_ns: number;
  buckets: number;
  /**
   * Bounds of the classes. Class `i` contains values above `bounds[i]`, up to and including `bounds[i + 1]`.
   * Each bound is the previous one times a constant factor.
   */
  bounds: number[];
  /** Numbers of values: a list for each time bucket, with a number for each class. */
  counts: number[][];
  /** Numbers of values that are above and below all classes. */
  above: number;
  below: number;
  unit: string;
  sql: string | null;
}

/** Horizontal line at a value, with a label. */
export interface Line {
  at: number;
  label: string;
}

/**
 * Selected time range, and selected values. Like in filters, values are at least `from` and less than `to`.
 */
export interface Chosen {
  range: [from_ns: number, to_ns: number];
  from: number;
  to: number;
}
