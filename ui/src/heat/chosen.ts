// Lines and the selection in a heat map.

import type { Range } from "../api/types";

/** Horizontal line at a value, with a label. */
export interface Line {
  at: number;
  label: string;
}

/**
 * Selected time range, and selected values. Like in filters, values are at least `from` and less than `to`.
 */
export interface Chosen {
  range: Range;
  from: number;
  to: number;
}
