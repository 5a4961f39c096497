// Answer to the request `sql`, and the catalogue for completion.

import type { Cell } from "../api/types";

export interface SqlColumn {
  name: string;
  /** Arrow type, such as `Int64`, `Utf8` or `Float64`. */
  type: string;
  unit: string | null;
}

export interface SqlAnswer {
  columns: SqlColumn[];
  rows: Cell[][];
  /** True if the result has more rows than the answer. */
  more: boolean;
  took_ms: number;
}

/** Tables and functions that completion suggests. */
export interface Catalogue {
  tables: {
    name: string;
    about: string | null;
    view: boolean;
    columns: { name: string; type: string; about: string | null }[];
  }[];
  functions: { name: string; signature: string; about: string | null }[];
}

/** Position in a query, counted from 1. */
export interface Place {
  line: number;
  column: number;
}

/** Returns the unit of a column. If the answer has none, the name of the column determines it. */
export function unitOf({ name, unit }: SqlColumn): string {
  if (unit) return unit;
  if (/_ns$/.test(name)) return "ns";
  return /_bytes$/.test(name) ? "bytes" : "";
}

/** Returns true if the values of a column are times since the trace's start. */
export function isMoment({ name }: SqlColumn): boolean {
  return /^(time|start|end|from|at|readied|bucket|out|first_seen)_ns$|_(start|end|from|at|time|readied)_ns$/.test(name);
}

/** Returns true if a column has numbers. */
export function isNumeric({ type }: SqlColumn): boolean {
  return /^(U?Int|Float|Decimal)/i.test(type);
}

/** Formats a cell for display and for copies. An unknown value is empty text. */
export function plain(cell: Cell): string {
  if (cell === null) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}
