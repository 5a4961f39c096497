// Filters: what they leave, in words, and how they join.

import type { Column, Filter, Id, Table } from "../api/types";
import { measured } from "../format";
import { titled } from "./columns";

/** What leaves out runs within which switches are missing. */
export const DOUBTFUL = "doubtful";

/** Those filters that a table can follow: those by columns it has. */
export function applicable(filters: readonly Filter[], table: Table | undefined): Filter[] {
  return filters.filter((filter) => table?.columns.some((column) => column.name === filter.column));
}

/** A filter by values of a key: by their labels, which other tables and traces know too; ids tell the unknown. */
export function byValues(column: string, values: readonly { id: Id; label: string }[], but = false): Filter {
  if (values.some(({ id }) => id === null)) {
    const ids = values.map(({ id }) => id);
    return but ? { column, not_in: ids } : { column, in: ids };
  }
  const labels = values.map(({ label }) => label);
  return but ? { column, is_not: labels } : { column, is: labels };
}

function listed(names: readonly string[]): string {
  return names.length > 4 ? `${names.slice(0, 4).join(", ")}, … (${names.length})` : names.join(", ");
}

const idNames = (ids: readonly Id[], about?: Column) =>
  ids.map((id) => (id === null ? "unknown" : (about?.names?.[id] ?? (about?.numeric_key ? String(id) : `no. ${id}`))));

/** What a filter leaves, for people, in the words that head its column. */
export function told(filter: Filter, about?: Column): string {
  const { column, from, to } = filter;
  const [name, unit] = [about ? titled(about) : column, about?.unit ?? ""];
  if (about?.kind === "test") return `${filter.is_not ? "without" : "only"} ${name.toLowerCase()}`;
  const says: string[] = [];
  if (filter.is) says.push(`${name}: ${listed(filter.is)}`);
  if (filter.is_not) says.push(`${name}: not ${listed(filter.is_not)}`);
  if (filter.in) says.push(`${name}: ${listed(idNames(filter.in, about))}`);
  if (filter.not_in) says.push(`${name}: not ${listed(idNames(filter.not_in, about))}`);
  if (filter.contains !== undefined) says.push(`${name} contains “${filter.contains}”`);
  if (from !== undefined && from !== null) says.push(`${name} ≥ ${measured(from, unit)}`);
  if (to !== undefined && to !== null) says.push(`${name} < ${measured(to, unit)}`);
  return says.join(", ");
}

/** What a filter asks of its column: of two that ask the same the newer stays. */
function test(filter: Filter): string {
  return Object.keys(filter)
    .map((name) => ({ in: "is", not_in: "but", is_not: "but", to: "from" })[name] ?? name)
    .sort()
    .join();
}

/** The filters with one more. What leaves values out adds up; else the newer of a kind replaces the older. */
export function joined(filters: readonly Filter[], one: Filter): Filter[] {
  const older = filters.find((other) => other.column === one.column && test(other) === test(one));
  if (older === undefined) return [...filters, one];
  let newer = one;
  if (one.is_not && older.is_not) newer = { ...one, is_not: [...new Set([...older.is_not, ...one.is_not])] };
  if (one.not_in && older.not_in) newer = { ...one, not_in: [...new Set([...older.not_in, ...one.not_in])] };
  if ((one.is_not && older.not_in) || (one.not_in && older.is_not)) return [...filters, one];
  return filters.map((other) => (other === older ? newer : other));
}
