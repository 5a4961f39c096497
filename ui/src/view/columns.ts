// A view's columns: keys, the golden bar, what is shown right of it.

import type { Column, Id, Table, View } from "../api/types";

/** The golden bar among a view's columns. */
export const BAR = "|";

/** What is made of the rows of a group, by the name in a column: `cpu_ns:sum`. */
export const AGGREGATES = ["sum", "count", "mean", "min", "max", "p50", "p90", "p95", "p99", "p999"] as const;
export type Aggregate = (typeof AGGREGATES)[number];

/** What to say of a table that has no rows. */
export function absence({ record }: Table): string {
  return `The trace holds none of this.${record === "" ? "" : ` To have it, record ${record}.`}`;
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

/** A column's name and what is made of it; `rows` and keys have no aggregate. */
export function parts(column: string): { name: string; aggregate: Aggregate | null } {
  const colon = column.lastIndexOf(":");
  const aggregate = colon < 0 ? undefined : AGGREGATES.find((one) => one === column.slice(colon + 1));
  return aggregate === undefined ? { name: column, aggregate: null } : { name: column.slice(0, colon), aggregate };
}

/** The keys left of the bar, in order. */
export function keysOf(columns: readonly string[]): string[] {
  const bar = columns.indexOf(BAR);
  return bar < 0 ? [] : columns.slice(0, bar);
}

/** What is right of the bar, in order. */
export function valuesOf(columns: readonly string[]): string[] {
  return columns.slice(columns.indexOf(BAR) + 1);
}

function declared(table: Table | undefined, name: string): Column | undefined {
  return table?.columns.find((column) => column.name === name);
}

/** Whether a column may stand left of the bar. */
export function isKey(table: Table, column: string): boolean {
  const { name, aggregate } = parts(column);
  return aggregate === null && declared(table, name)?.kind === "key";
}

/** A column's name for people, without the unit. */
export function titled(column: Column): string {
  return (column.title || column.name).replace(/ \((s|ms|us|ns)\)$/, "");
}

/** What heads a column. */
export function heading(table: Table | undefined, column: string): { title: string; aggregate: string; about: string } {
  if (column === "rows") return { title: "Rows", aggregate: "", about: "How many rows there are." };
  const { name, aggregate } = parts(column);
  const known = declared(table, name);
  return {
    // Cells say their unit; titles of Windows Performance Analyzer do, too.
    title: known ? titled(known) : name,
    aggregate: aggregate === null ? "" : TITLES[aggregate],
    about: known === undefined ? name : `${name}: ${known.about}`,
  };
}

/** The unit of a column's cells. */
export function unitOf(table: Table | undefined, column: string): string {
  const { name, aggregate } = parts(column);
  if (column === "rows" || aggregate === "count") return "";
  return declared(table, name)?.unit ?? "";
}

/** Whether a column's cells are numbers to be set right. */
export function isNumeric(table: Table | undefined, column: string): boolean {
  const { name, aggregate } = parts(column);
  if (column === "rows" || aggregate !== null) return true;
  const known = declared(table, name);
  return known !== undefined && (known.kind !== "key" || known.numeric_key);
}

/**
 * The columns with one moved before another place (0 to `columns.length`). A measure does not pass the
 * bar, since nothing is grouped by it: it stays just right of it. Nor does the bar pass a measure.
 */
export function moved(table: Table, columns: readonly string[], from: number, before: number): string[] {
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

/** The columns with one more: a key just left of the bar, else at the end. */
export function added(table: Table, columns: readonly string[], column: string): string[] {
  if (columns.includes(column)) return [...columns];
  if (!isKey(table, column)) return [...columns, column];
  const bar = Math.max(columns.indexOf(BAR), 0);
  return [...columns.slice(0, bar), column, ...columns.slice(bar)];
}

/** The columns without that one; the bar stays. */
export function without(columns: readonly string[], column: string): string[] {
  return column === BAR ? [...columns] : columns.filter((one) => one !== column);
}

/**
 * The view with other columns. A graph coloured by the first key goes on to be; the order goes where its
 * column does.
 */
export function regrouped(view: View, columns: string[]): View {
  const [before, after] = [keysOf(view.columns)[0], keysOf(columns)[0]];
  const graph = { ...view.graph };
  if (before !== after && (graph.by ?? undefined) === before && after !== undefined) graph.by = after;
  const sort = view.sort && (view.sort.column === "key" || valuesOf(columns).includes(view.sort.column)) ? view.sort : null;
  return { ...view, columns, graph, sort };
}

/** What a column not chosen yet would be added as: a key by its name, a measure by its sum. */
export function firstForm(column: Column): string {
  if (column.kind === "key") return column.name;
  return `${column.name}:${column.kind === "time" ? "min" : "sum"}`;
}

/** The view of a table nobody has chosen columns of. Of rows that last it tells how long within what is seen. */
export function plainView(table: Table): View {
  const keys = table.columns.filter((column) => column.kind === "key").slice(0, 1);
  const measures = table.columns.filter((column) => column.kind === "measure" && column.name !== "time");
  const lasting = table.interval === null ? [] : ["time"];
  const measure = measures.find((column) => column.unit === "ns" || column.unit === "bytes")?.name;
  return {
    table: table.name,
    columns: [...keys.map((key) => key.name), BAR, "rows", ...[...lasting, ...measures.map(({ name }) => name)].slice(0, 3).map((name) => `${name}:sum`)],
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

/** The filter that leaves only the rows of a group: of each key on the path its id. */
export function pathFilter(keys: readonly string[], path: readonly Id[]): { column: string; in: Id[] }[] {
  return path.map((id, level) => ({ column: keys[level]!, in: [id] }));
}
