// Order of the rows of a table of changes.

import type { ComparedRow } from "../api/types";
import { difference } from "./words";

export type Column = "name" | "before" | "after" | "difference" | "ratio" | "counts" | "means" | "conclusion";

export interface Order {
  column: Column;
  descending: boolean;
}

const mean = (count: number, ns: number): number => (count > 0 ? ns / count : 0);
const times = (before: number, after: number): number => (before > 0 ? after / before : after > 0 ? Infinity : 1);

/** Numbers by which rows are sorted. Differences are sorted by size, regardless of their sign. */
const KEYS: Record<Exclude<Column, "name" | "conclusion">, (row: ComparedRow) => number> = {
  before: ({ before_ns }) => before_ns,
  after: ({ after_ns }) => after_ns,
  difference: (row) => Math.abs(difference(row)),
  ratio: ({ before_ns, after_ns }) => times(before_ns, after_ns),
  counts: ({ before_count, after_count }) => Math.max(before_count, after_count),
  means: (row) => Math.max(mean(row.before_count, row.before_ns), mean(row.after_count, row.after_ns)),
};

/** Returns the rows in the given order. Rows that are equal in this order are sorted by name. */
export function sorted(rows: ComparedRow[], { column, descending }: Order): ComparedRow[] {
  const sign = descending ? -1 : 1;
  const byName = (one: ComparedRow, other: ComparedRow) => byText(one.name, other.name);
  const compare = (one: ComparedRow, other: ComparedRow): number => {
    if (column === "name") return byName(one, other);
    if (column === "conclusion")
      return Number(one.differs) - Number(other.differs) || byText(one.conclusion, other.conclusion);
    const [a, b] = [KEYS[column](one), KEYS[column](other)];
    // Both ratios may be infinite.
    return a === b ? 0 : a - b;
  };
  return rows.toSorted((one, other) => sign * compare(one, other) || byName(one, other));
}

function byText(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

/** Returns the order after a press on the heading of a column. */
export function pressed(order: Order, column: Column): Order {
  const descending = order.column === column ? !order.descending : column !== "name";
  return { column, descending };
}
