// Filters: descriptions and combinations.

import type { ColumnInfo, Condition, Id, TableInfo } from "../api/types";
import { measured } from "../format";
import { isServiceRoutine } from "../heat/lines";
import { titled } from "./columns";

/** Name of the column that states whether a run is doubtful. */
export const DOUBTFUL = "doubtful";

/** Returns the filters whose columns the table has. */
export function applicable(filters: readonly Condition[], table: TableInfo | undefined): Condition[] {
  return filters.filter((filter) => table?.columns.some((column) => column.name === filter.column));
}

/**
 * Returns a filter for values of a key. The filter contains labels, because labels are the same in all tables and
 * traces. If one of the values is unknown, the filter contains ids. If `but` is true, the filter excludes the values.
 */
export function byValues(column: string, values: readonly { id: Id; label: string }[], but = false): Condition {
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

const idNames = (ids: readonly Id[], about?: ColumnInfo) =>
  ids.map((id) => (id === null ? "unknown" : (about?.names?.[id] ?? (about?.numeric_key ? String(id) : `no. ${id}`))));

/** Returns the words for a filter that selects exactly the DPCs or exactly the ISRs; `null` for other filters. */
function interruptsOf({ column, is }: Condition): string | null {
  if (column !== "kind" || !is) return null;
  if (is.length === 3 && is.every(isServiceRoutine)) return "only ISRs";
  return is.length === 4 && ["dpc", "threaded_dpc", "timer_dpc", "io_timer"].every((kind) => is.includes(kind))
    ? "only DPCs"
    : null;
}

/** Returns a description of a filter, with the title of its column. */
export function described(filter: Condition, about?: ColumnInfo): string {
  const { column, from, to } = filter;
  const [name, unit] = [about ? titled(about) : column, about?.unit ?? ""];
  const kinds = interruptsOf(filter);
  if (kinds) return kinds;
  if (about?.kind === "test") return `${filter.is_not ? "without" : "only"} ${name.toLowerCase()}`;
  const parts: string[] = [];
  if (filter.is) parts.push(`${name}: ${listed(filter.is)}`);
  if (filter.is_not) parts.push(`${name}: not ${listed(filter.is_not)}`);
  if (filter.in) parts.push(`${name}: ${listed(idNames(filter.in, about))}`);
  if (filter.not_in) parts.push(`${name}: not ${listed(idNames(filter.not_in, about))}`);
  if (filter.contains !== undefined) parts.push(`${name} contains “${filter.contains}”`);
  if (from !== undefined && from !== null) parts.push(`${name} ≥ ${measured(from, unit)}`);
  if (to !== undefined && to !== null) parts.push(`${name} < ${measured(to, unit)}`);
  return parts.join(", ");
}

/**
 * Returns the kind of a filter. If two filters of a column have the same kind, the newer one replaces the
 * older one.
 */
function kindOf(filter: Condition): string {
  return Object.keys(filter)
    .map((name) => ({ in: "is", not_in: "but", is_not: "but", to: "from" })[name] ?? name)
    .sort()
    .join();
}

/**
 * Adds a filter to a list. An exclusion is merged with an older exclusion. Other filters replace an older
 * filter of the same column and kind.
 */
export function joined(filters: readonly Condition[], one: Condition): Condition[] {
  const older = filters.find((other) => other.column === one.column && kindOf(other) === kindOf(one));
  if (older === undefined) return [...filters, one];
  let newer = one;
  if (one.is_not && older.is_not) newer = { ...one, is_not: [...new Set([...older.is_not, ...one.is_not])] };
  if (one.not_in && older.not_in) newer = { ...one, not_in: [...new Set([...older.not_in, ...one.not_in])] };
  if ((one.is_not && older.not_in) || (one.not_in && older.is_not)) return [...filters, one];
  return filters.map((other) => (other === older ? newer : other));
}
