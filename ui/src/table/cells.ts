// Text of table cells, for display and for copies.

import type { Cell, TableInfo } from "../api/types";
import { count, measured, moment } from "../format";
import { parts, unitOf } from "../view/columns";

/** Text that is displayed for unknown values. */
export const UNKNOWN = "–";

/**
 * Returns true if the numbers of a column are ids or codes, which are displayed without thousands
 * separators.
 */
function isName(table: TableInfo | undefined, column: string): boolean {
  const { name, aggregate } = parts(column);
  return aggregate === null && table?.columns.find((one) => one.name === name)?.kind === "key";
}

/** Formats a cell for display. */
export function cellText(table: TableInfo | undefined, column: string, cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return UNKNOWN;
  if (typeof cell === "object") return `${count(cell.different)} different`;
  if (typeof cell === "string") return cell;
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (isName(table, column)) return String(cell);
  const { name, aggregate } = parts(column);
  const kind = table?.columns.find((one) => one.name === name)?.kind;
  if (kind === "time" && aggregate !== "count") return moment(cell, 1000);
  return measured(cell, unitOf(table, column));
}

/** Formats a cell for copies, without a unit. */
export function cellRaw(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "object") return `${cell.different} different`;
  return String(cell);
}
