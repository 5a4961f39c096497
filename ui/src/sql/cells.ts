// Columns and cells of a query's result.

import type { JsonColumn, Range } from "../api/types";
import { measured, moment } from "../format";

/** Returns true if the values of a column are times since the trace's start. */
export function isMoment({ name }: JsonColumn): boolean {
  return /^(time|start|end|from|to|until|at|readied|bucket|out|first_seen)_ns$|_(start|end|from|at|time|readied)_ns$/.test(
    name,
  );
}

/** Returns true if a column has numbers. */
export function isNumeric({ type }: JsonColumn): boolean {
  return /^(U?Int|Float|Decimal)/i.test(type);
}

/** Returns the unit of a column. For a computed column, the unit is the ending of its name. */
export function unitOf({ name, unit }: JsonColumn): string {
  if (unit !== "") return unit;
  return name.endsWith("_ns") ? "ns" : name.endsWith("_bytes") ? "bytes" : "";
}

/** Formats a cell for display: times, durations and sizes with their units. */
export function shown(column: JsonColumn, cell: unknown): string {
  const value = typeof cell === "string" && isNumeric(column) && cell !== "" ? Number(cell) : cell;
  if (typeof value !== "number" || !Number.isFinite(value)) return plain(cell);
  if (isMoment(column)) return moment(value, 1000);
  const unit = unitOf(column);
  return unit === "" ? plain(cell) : measured(value, unit);
}

/**
 * Returns the time range to which the cell in column `place` leads. If the cell is the start or the end of the row's
 * time range, returns this range. Otherwise, returns the moment in the cell. Returns `null` if the cell has no time.
 */
export function timesOf(columns: readonly JsonColumn[], row: readonly unknown[], place: number): Range | null {
  const at = row[place];
  if (!isMoment(columns[place]) || typeof at !== "number" || at < 0) return null;
  const find = (names: RegExp) => {
    const cell = row[columns.findIndex(({ name }) => names.test(name))];
    return typeof cell === "number" ? cell : null;
  };
  const [start, end] = [find(/^(start|from|readied)_ns$/), find(/^(end|to)_ns$/)];
  return start !== null && end !== null && end > start && (at === start || at === end) ? [start, end] : [at, at];
}

/** Formats a cell for copies. An unknown value is empty text. */
export function plain(cell: unknown): string {
  if (cell === null) return "";
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}
