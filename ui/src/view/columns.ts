// Columns of a view: keys, the golden bar, and aggregates.

import type { ColumnInfo, Id, Preset, TableInfo, View } from "../api/types";
import { stackTitle } from "../flame/stack_title";

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
  return aggregate === null && (declared(table, name)?.kind === "key" || table.stacks.includes(name));
}

/** Returns the column of stacks among the keys. Its frames are shown below the groups of all other keys. */
export function stackOf(table: TableInfo | undefined, keys: readonly string[]): string | undefined {
  return keys.find((key) => table?.stacks.includes(key));
}

/**
 * Returns the columns with at most one column of stacks, directly left of the golden bar. If several keys are columns
 * of stacks, only the new one stays: the first one that is not in `before`.
 */
export function stackLast(table: TableInfo | undefined, columns: string[], before: readonly string[] = []): string[] {
  const isStack = (column: string) => table?.stacks.includes(column) === true;
  const keys = keysOf(columns);
  const stacks = keys.filter(isStack);
  const kept = stacks.find((stack) => !before.includes(stack)) ?? stacks[0];
  const others = keys.filter((key) => !isStack(key));
  // Right of the bar, a stack has no value.
  const values = valuesOf(columns).filter((column) => !isStack(column));
  return [...others, ...(kept === undefined ? [] : [kept]), BAR, ...values];
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
  if (known === undefined && table?.stacks.includes(name)) {
    const about = "Calls, outermost first. Open a row to see its callees. A stack is always the last column of groups.";
    return { title: stackTitle(name, table.name), aggregate: "", about };
  }
  // Some columns of Windows Performance Analyzer have equal titles, for example the two flags `DPC/ISR`.
  const isAmbiguous = table?.columns.some((other) => other !== known && known && titled(other) === titled(known));
  return {
    // Cells contain units, so the unit is removed from titles of Windows Performance Analyzer.
    title: known ? `${titled(known)}${isAmbiguous ? ` [${name}]` : ""}` : name,
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

/** Returns the form in which a column is added to a view: a key, the minimum of a time, or the sum of a measure. */
export function firstForm(column: ColumnInfo): string {
  if (column.kind === "key") return column.name;
  return `${column.name}:${column.kind === "time" ? "min" : "sum"}`;
}

/**
 * Returns the default view of a table. If a built-in view shows the table as a timeline, it is the default view,
 * without its time range. Otherwise, if rows have a duration, the view contains their time within the visible range.
 */
export function plainView(table: TableInfo, presets: readonly Preset[] = []): View {
  const known = presets.find(({ view }) => view.table === table.name && view.graph.kind === "timeline");
  if (known) return { ...known.view, range: null };
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

/** Columns of single runs, in the order of Windows Performance Analyzer. */
const RUN_COLUMNS = [
  "start_ns",
  "process",
  "thread",
  "cpu",
  "cpu_ns",
  "ready_ns",
  "waits_ns",
  "since_last_ns",
  "readied_ns",
  "readying_process",
  "readying_thread",
  "priority",
  "previous_rank",
  "rank_out",
  "previous_wait_reason",
  "end_ns",
];

/** Number of columns of single rows that a view does not name. */
const MORE_COLUMNS = 12;

/** Returns the columns in which single rows of a view are shown. */
export function rowColumns(table: TableInfo | undefined, view: View): string[] {
  const exists = (name: string) => table?.columns.some((column) => column.name === name) === true;
  const of = [...keysOf(view.columns), ...valuesOf(view.columns)].map((column) => parts(column).name);
  const all = (table?.columns ?? []).filter(({ kind }) => kind !== "test").map(({ name }) => name);
  const first = [table?.time ?? "", table?.interval?.start ?? "", ...of];
  const known = table?.name === "cpu_runs" ? RUN_COLUMNS : [...first, ...all].slice(0, first.length + MORE_COLUMNS);
  return [BAR, ...new Set([...known, ...of].filter((name) => name !== "time" && exists(name)))];
}

/** Returns the filter that selects the rows of a group. It has the ids of all keys on the group's path. */
export function pathFilter(keys: readonly string[], path: readonly Id[]): { column: string; in: Id[] }[] {
  return keys.slice(0, path.length).map((column, level) => ({ column, in: [path[level]] }));
}
