// CSS classes and ARIA attributes for the rows and headers of regular-table, which creates only plain cells.

import type { RegularTableElement } from "regular-table";
import type { Cell, TableInfo, View } from "../api/types";
import { percent } from "../format";
import { valueColor } from "../colour";
import { BAR, heading, isNumeric, parts } from "../view/columns";
import { pathName, type Row } from "./tree";

/** State of a table that affects the look of its cells. */
export interface Decoration {
  /** Id of the table. The ids of rows start with it. */
  uid: string;
  title: string;
  table: TableInfo | undefined;
  view: View;
  /** Columns of the drawn rows. */
  columns: readonly string[];
  /** Rows that are drawn, by their index. */
  drawn: ReadonlyMap<number, Row>;
  /** Number of all rows. */
  count: number;
  /** Totals of the columns right of the bar. */
  totals: readonly Cell[];
  /** Names of the paths of selected rows. */
  selected: ReadonlySet<string>;
  /** Index of the row with the keyboard focus. */
  current: number;
}

/** Returns the column and the row of a cell or header. */
export function placeOf(element: RegularTableElement, cell: Element | null | undefined): { x?: number; y?: number } {
  return cell ? (element.getMeta(cell as HTMLElement) ?? {}) : {};
}

/** Returns true if the view is sorted by the column. */
export function isSortedBy({ sort }: View, column: string, x: number, bar: number): boolean {
  if (!sort) return false;
  return x < bar ? x === 0 && sort.column === "key" : sort.column === column;
}

/**
 * Returns the index of the column with a row's label. Frames and single rows have their label in the column of the last
 * key.
 */
export function labelColumn({ path }: Row, bar: number): number {
  return Math.min(path.length, bar) - 1;
}

/** Returns the indentation of a row's label, in pixels. */
export function indentOf({ path }: Row, bar: number): number {
  return Math.max(path.length - bar, 0) * 12;
}

/** Sets classes and ARIA attributes of all drawn rows and headers. */
export function decorate(element: RegularTableElement, state: Decoration): void {
  const body = element.querySelector("table");
  // The focus is on the grid, so the grid has the ARIA role. The table inside only arranges the cells.
  body?.setAttribute("role", "presentation");
  element.setAttribute("role", "treegrid");
  element.setAttribute("aria-rowcount", String(state.count));
  if (state.count > 0) element.setAttribute("aria-activedescendant", `${state.uid}-current`);
  else element.removeAttribute("aria-activedescendant");
  element.setAttribute("aria-label", `Rows of ${state.title}`);
  for (const group of element.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
  for (const row of element.querySelectorAll<HTMLElement>("tbody tr")) decorateRow(element, row, state);
  element.querySelectorAll<HTMLElement>("thead tr").forEach((row, level) => {
    row.setAttribute("role", row.children.length > 0 ? "row" : "presentation");
    for (const head of row.children) decorateHead(element, head as HTMLElement, level, state);
  });
}

function decorateRow(element: RegularTableElement, row: HTMLElement, state: Decoration): void {
  const { columns, drawn, selected, current, uid } = state;
  row.setAttribute("role", "row");
  for (const cell of row.children) cell.setAttribute("role", "gridcell");
  let item: Row | undefined;
  for (const cell of row.children) {
    const { x, y } = placeOf(element, cell);
    if (x === undefined || y === undefined || columns[x] === undefined) continue;
    item = drawn.get(y);
    decorateCell(cell as HTMLElement, x, item, state);
    row.classList.toggle("current", y === current);
    row.id = y === current ? `${uid}-current` : "";
  }
  if (item === undefined) return;
  const isSelected = selected.has(pathName(item.path));
  row.classList.toggle("selected", isSelected);
  row.setAttribute("aria-level", String(item.path.length));
  row.setAttribute("aria-selected", String(isSelected));
  row.setAttribute("aria-setsize", String(item.siblings));
  row.setAttribute("aria-posinset", String(item.place + 1));
  if (item.opens) row.setAttribute("aria-expanded", String(item.open));
  else row.removeAttribute("aria-expanded");
}

function decorateCell(cell: HTMLElement, x: number, item: Row | undefined, state: Decoration): void {
  const { columns, table, view } = state;
  const [column, bar] = [columns[x], columns.indexOf(BAR)];
  /** Row whose label is in this cell; `null` for all other cells. */
  const own = x < bar && item && labelColumn(item, bar) === x ? item : null;
  const isColoured = own !== null && column === view.graph.by && own.path.length <= bar;
  const share = item && x > bar ? shareOf(item, x - bar - 1, state) : null;
  cell.className = [
    column === BAR ? "bar" : x < bar ? "key" : "value",
    x > bar && isNumeric(table, column) ? "numeric" : "",
    own === null ? "" : !own.opens ? "leaf" : own.open ? "opened" : "closed",
    isColoured ? "coloured" : "",
    own && own.path.length > bar ? "below" : "",
    share === null ? "" : "barred",
  ].join(" ");
  if (own) cell.style.setProperty("--indent", `${indentOf(own, bar)}px`);
  else cell.style.removeProperty("--indent");
  if (share !== null) cell.style.setProperty("--share", share.toFixed(4));
  else cell.style.removeProperty("--share");
  if (isColoured) cell.style.setProperty("--swatch", valueColor(column, own.group.label));
  else cell.style.removeProperty("--swatch");
  const of = share === null || !/^(rows|.*:(sum|count))$/.test(column) ? "" : `, ${percent(share)} of all`;
  cell.title = own || x > bar ? `${cell.textContent ?? ""}${of}` : "";
}

/** Returns the share of a value in the total of its column, 0 to 1; `null` if the value has no share. */
function shareOf({ group }: Row, at: number, { totals, columns, table }: Decoration): number | null {
  const [value, total] = [group.values[at], totals[at]];
  const column = columns[columns.indexOf(BAR) + 1 + at];
  if (typeof value !== "number" || typeof total !== "number" || total <= 0 || value < 0) return null;
  // Times and ids have no share.
  if (!/^rows$|:/.test(column) || kindOf(table, column) === "time") return null;
  return Math.min(value / total, 1);
}

function kindOf(table: TableInfo | undefined, column: string): string | undefined {
  const { name } = parts(column);
  return table?.columns.find((one) => one.name === name)?.kind;
}

function decorateHead(element: RegularTableElement, head: HTMLElement, level: number, state: Decoration): void {
  const { columns, table, view } = state;
  const { x } = placeOf(element, head);
  const column = x === undefined ? undefined : columns[x];
  if (x === undefined || column === undefined) return;
  const bar = columns.indexOf(BAR);
  head.classList.toggle("bar", column === BAR);
  head.classList.toggle("key", x < bar);
  head.classList.toggle("numeric", x > bar && isNumeric(table, column));
  head.classList.toggle("total", level > 0);
  head.dataset.column = column;
  if (level > 0) {
    head.setAttribute("role", "gridcell");
    return;
  }
  const order = view.sort?.descending ? "descending" : "ascending";
  head.tabIndex = 0;
  head.setAttribute("role", "columnheader");
  head.setAttribute("aria-sort", isSortedBy(view, column, x, bar) ? order : "none");
  head.setAttribute("aria-label", column === BAR ? "Golden bar" : (head.textContent ?? column));
  head.title =
    column === BAR
      ? "Golden bar: columns left of it group the rows. Drag it, or move it with Alt ← →."
      : `${heading(table, column).about}\n\nClick: sort. Drag: move. Right-click: more. Keys: Enter, Alt ← →, Delete.`;
}
