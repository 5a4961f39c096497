// Columns of a view: keys, the golden bar, and aggregates.

import type { ColumnInfo, Id, TableInfo, View } from "../api/types";

/** Text that represents the golden bar in the list of columns. */
export const BAR = "|";

/** Aggregate functions. A column such as `cpu_ns:sum` contains the name of the function. */
export const AGGREGATES = ["sum", "count", "mean", "min", "max", "p50", "p90", "p95", "p99", "p999"] as const;
export type Aggregate = (typeof AGGREGATES)[number];

/** Returns a note for a table without rows. */
export function absence({ record }: TableInfo): string {
  return `Not recorded.${record === "" ? "" : ` Record ${record}.`}`;
}

const TITLES: Record<Aggregate, string> = {
  sum: "sum",
  count: "count",
  mean: "mean",
  min: "min",
  max: "max",
  p50: "median",
  p90: "90 %",
  p95: "95 %",
  p99: "99 %",
  p999: "99.9 %",
};

/** Splits a column of a view into its name and its aggregate function. `rows` and keys have no function. */
export function parts(column: string): { name: string; aggregate: Aggregate | null } {
  const colon = column.lastIndexOf(":");
  const aggregate = colon < 0 ? undefined : AGGREGATES.find((one) => one === column.slice(colon + 1));
  return aggregate === undefined ? { name: column, aggregate: null } : { name: column.slice(0, colon), aggregate };
}

/** Returns the keys, which are left of the golden bar. */
export function keysOf(columns: readonly string[]): string[] {
  const bar = columns.indexOf(BAR);
  return bar < 0 ? [] : columns.slice(0, bar);
}

/** Returns the columns that are right of the golden bar. */
export function valuesOf(columns: readonly string[]): string[] {
  return columns.slice(columns.indexOf(BAR) + 1);
}

function declared(table: TableInfo | undefined, name: string): ColumnInfo | undefined {
  return table?.columns.find((column) => column.name === name);
}

/** Returns true if a column can be left of the golden bar. */
export function isKey(table: TableInfo, column: string): boolean {
  const { name, aggregate } = parts(column);
  return aggregate === null && declared(table, name)?.kind === "key";
}

/** Returns the title of a column without its unit. */
export function titled(column: ColumnInfo): string {
  return (column.title || column.name).replace(/ \((s|ms|us|ns)\)$/, "");
}

/** Returns the title, the aggregate function and the description for the header of a column. */
export function heading(
  table: TableInfo | undefined,
  column: string,
): { title: string; aggregate: string; about: string } {
  if (column === "rows") return { title: "Rows", aggregate: "", about: "Number of rows." };
  const { name, aggregate } = parts(column);
  const known = declared(table, name);
  return {
    // Cells contain units, so the unit is removed from titles of Windows Performance Analyzer.
    title: known ? titled(known) : name,
    aggregate: aggregate === null ? "" : TITLES[aggregate],
    about: known === undefined ? name : `${name}: ${known.about}`,
  };
}

/** Returns the unit of a column. */
export function unitOf(table: TableInfo | undefined, column: string): string {
  const { name, aggregate } = parts(column);
  if (column === "rows" || aggregate === "count") return "";
  return declared(table, name)?.unit ?? "";
}

/** Returns true if a column has numbers, which are right-aligned. */
export function isNumeric(table: TableInfo | undefined, column: string): boolean {
  const { name, aggregate } = parts(column);
  if (column === "rows" || aggregate !== null) return true;
  const known = declared(table, name);
  return known !== undefined && (known.kind !== "key" || known.numeric_key);
}

/**
 * Moves a column before another position (0 to `columns.length`). Rows cannot be grouped by a measure, so a
 * measure cannot move to the left of the golden bar. It is then placed directly right of the bar. The bar
 * cannot move across a measure.
 */
export function moved(table: TableInfo, columns: readonly string[], from: number, before: number): string[] {
  const column = columns[from];
  if (column === undefined) return [...columns];
  const left = columns.filter((_, place) => place !== from);
  let place = Math.min(Math.max(before > from ? before - 1 : before, 0), left.length);
  if (column === BAR) {
    const first = left.findIndex((one) => !isKey(table, one));
    if (first >= 0) place = Math.min(place, first);
  } else if (!isKey(table, column)) {
    place = Math.max(place, left.indexOf(BAR) + 1);
  }
  left.splice(place, 0, column);
  return left;
}

/** Adds a column. A key is inserted left of the golden bar. All other columns are appended at the end. */
export function added(table: TableInfo, columns: readonly string[], column: string): string[] {
  if (columns.includes(column)) return [...columns];
  if (!isKey(table, column)) return [...columns, column];
  const bar = Math.max(columns.indexOf(BAR), 0);
  return [...columns.slice(0, bar), column, ...columns.slice(bar)];
}

/** Removes a column. The golden bar cannot be removed. */
export function without(columns: readonly string[], column: string): string[] {
  return column === BAR ? [...columns] : columns.filter((one) => one !== column);
}

/**
 * Returns the view with other columns. If the graph is coloured by the first key, it is then coloured by the
 * new first key. If the order depends on a removed column, the order is removed.
 */
export function regrouped(view: View, columns: string[]): View {
  const [before, after] = [keysOf(view.columns)[0], keysOf(columns)[0]];
  const graph = { ...view.graph };
  if (before !== after && (graph.by ?? undefined) === before && after !== undefined) graph.by = after;
  const sort =
    view.sort && (view.sort.column === "key" || valuesOf(columns).includes(view.sort.column)) ? view.sort : null;
  return { ...view, columns, graph, sort };
}

/** Returns the form in which a column is added to a view: the name of a key, or a measure with its sum. */
export function firstForm(column: ColumnInfo): string {
  if (column.kind === "key") return column.name;
  return `${column.name}:${column.kind === "time" ? "min" : "sum"}`;
}

/**
 * Returns the default view of a table. If rows have a duration, the view contains their time within the
 * visible range.
 */
export function plainView(table: TableInfo): View {
  const keys = table.columns.filter((column) => column.kind === "key").slice(0, 1);
  const measures = table.columns.filter((column) => column.kind === "measure" && column.name !== "time");
  const lasting = table.interval === null ? [] : ["time"];
  const measure = measures.find((column) => column.unit === "ns" || column.unit === "bytes")?.name;
  return {
    table: table.name,
    columns: [
      ...keys.map((key) => key.name),
      BAR,
      "rows",
      ...[...lasting, ...measures.map(({ name }) => name)].slice(0, 3).map((name) => `${name}:sum`),
    ],
    graph: {
      kind: "timeline",
      measure: lasting[0] ?? measure ?? "rows",
      by: keys[0]?.name ?? null,
      as: "stacked",
    },
    range: null,
    filter: [],
    sort: null,
  };
}

/** Returns the filter that selects the rows of a group. It has the ids of all keys on the group's path. */
export function pathFilter(keys: readonly string[], path: readonly Id[]): { column: string; in: Id[] }[] {
  return path.map((id, level) => ({ column: keys[level], in: [id] }));
}
