// What the server answers to `sql`, and what there is to ask.

import type { Cell } from "../api/types";

export interface SqlColumn {
  name: string;
  /** As Arrow calls it: `Int64`, `Utf8`, `Float64`… */
  type: string;
  unit: string | null;
}

export interface SqlAnswer {
  columns: SqlColumn[];
  rows: Cell[][];
  /** There are more rows than these. */
  more: boolean;
  took_ms: number;
}

/** What can be asked: for completion. */
export interface Catalogue {
  tables: {
    name: string;
    about: string | null;
    view: boolean;
    columns: { name: string; type: string; about: string | null }[];
  }[];
  functions: { name: string; signature: string; about: string | null }[];
}

/** Where in a query, from 1. */
export interface Place {
  line: number;
  column: number;
}

/** The unit of a column: names carry it. */
export function unitOf({ name, unit }: SqlColumn): string {
  if (unit) return unit;
  if (/_ns$/.test(name)) return "ns";
  return /_bytes$/.test(name) ? "bytes" : "";
}

/** Whether its values are moments since the trace's start. */
export function isMoment({ name }: SqlColumn): boolean {
  return /^(time|start|end|from|at|readied|bucket|out|first_seen)_ns$|_(start|end|from|at|time|readied)_ns$/.test(name);
}

/** Whether a column holds numbers. */
export function isNumeric({ type }: SqlColumn): boolean {
  return /^(U?Int|Float|Decimal)/i.test(type);
}

/** A cell as it is, for people and for copies; nothing is not known. */
export function plain(cell: Cell): string {
  if (cell === null) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}
