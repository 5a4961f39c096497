// Columns and cells of a query's result.

import type { JsonColumn } from "../api/types";

/** Returns true if the values of a column are times since the trace's start. */
export function isMoment({ name }: JsonColumn): boolean {
  return /^(time|start|end|from|at|readied|bucket|out|first_seen)_ns$|_(start|end|from|at|time|readied)_ns$/.test(name);
}

/** Returns true if a column has numbers. */
export function isNumeric({ type }: JsonColumn): boolean {
  return /^(U?Int|Float|Decimal)/i.test(type);
}

/** Formats a cell for display and for copies. An unknown value is empty text. */
export function plain(cell: unknown): string {
  if (cell === null) return "";
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}
