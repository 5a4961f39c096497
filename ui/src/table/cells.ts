// A cell as text: for people, and to copy.

import type { Cell, Table } from "../api/types";
import { count, measured, moment } from "../format";
import { parts, unitOf } from "../view/columns";

/** What stands for the unknown. */
export const UNKNOWN = "–";

/** Numbers that are names: identities, codes. A separator of thousands would be wrong in them. */
function isName(table: Table | undefined, column: string): boolean {
  const { name, aggregate } = parts(column);
  return aggregate === null && table?.columns.find((one) => one.name === name)?.kind === "key";
}

/** A cell for people. */
export function cellText(table: Table | undefined, column: string, cell: Cell | undefined): string {
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

/** A cell as it is: to copy into other programs. */
export function cellRaw(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "object") return `${cell.different} different`;
  return String(cell);
}
