// Formatting of table rows as text for the clipboard.

import type { TableInfo } from "../api/types";
import { csv, markdown } from "../copy";
import { BAR, heading, keysOf, unitOf } from "../view/columns";
import { cellRaw, cellText } from "./cells";
import { pathName, type Row } from "./tree";

/** Formats rows as CSV or Markdown. Each row contains the labels of its key and of all outer keys. */
export function tableText(
  table: TableInfo | undefined,
  columns: readonly string[],
  rows: readonly Row[],
  form: "csv" | "markdown",
): string {
  const bar = columns.indexOf(BAR);
  const shown = columns.filter((column) => column !== BAR);
  const isGrouped = keysOf(columns).length > 0;
  const labels = new Map(rows.map((row) => [pathName(row.path), row.group.label]));
  const label = ({ path }: Row, level: number) =>
    level < path.length ? (labels.get(pathName(path.slice(0, level + 1))) ?? String(path[level])) : "";
  const cells = rows.map((row) =>
    shown.map((column, place) => {
      if (place < bar) return label(row, place);
      const cell = row.group.values[place - bar];
      return form === "csv" ? cellRaw(cell) : cellText(table, column, cell);
    }),
  );
  const header = shown.map((column) => {
    const { title, aggregate } = heading(table, column);
    // Cells in CSV are numbers without units, so the header contains the unit.
    const unit = form === "csv" ? unitOf(table, column) : "";
    const details = [isGrouped ? aggregate : "", unit].filter((part) => part !== "").join(", ");
    return details === "" ? title : `${title} (${details})`;
  });
  return form === "csv" ? csv(header, cells) : markdown(header, cells);
}

/**
 * Returns the cells of one column. For a key, these are only the cells of rows that show a value of this
 * key.
 */
export function columnCells(columns: readonly string[], column: string, rows: readonly Row[]): string[] {
  const [place, bar] = [columns.indexOf(column), columns.indexOf(BAR)];
  return rows.flatMap((row) => {
    if (place > bar) return [cellRaw(row.group.values[place - bar - 1])];
    return row.path.length === place + 1 ? [row.group.label] : [];
  });
}
