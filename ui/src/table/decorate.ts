// CSS classes and ARIA attributes for the rows and headers of regular-table, which creates only plain cells.

import type { RegularTableElement } from "regular-table";
import type { TableInfo, View } from "../api/types";
import { valueColor } from "../colour";
import { BAR, heading, isNumeric } from "../view/columns";
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

/** Sets classes and ARIA attributes of all drawn rows and headers. */
export function decorate(element: RegularTableElement, state: Decoration): void {
  const body = element.querySelector("table");
  body?.setAttribute("role", "treegrid");
  body?.setAttribute("aria-label", `Table of ${state.title}`);
  body?.setAttribute("aria-rowcount", String(state.count));
  element.setAttribute("aria-activedescendant", `${state.uid}-current`);
  element.setAttribute("aria-label", `Rows of ${state.title}`);
  for (const row of element.querySelectorAll<HTMLElement>("tbody tr")) decorateRow(element, row, state);
  element.querySelectorAll<HTMLElement>("thead tr").forEach((row, level) => {
    for (const head of row.children) decorateHead(element, head as HTMLElement, level, state);
  });
}

function decorateRow(element: RegularTableElement, row: HTMLElement, state: Decoration): void {
  const { columns, drawn, selected, current, uid } = state;
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
  const own = x < bar && item?.path.length === x + 1 ? item : null;
  const isColoured = own !== null && column === view.graph.by;
  cell.className = [
    column === BAR ? "bar" : x < bar ? "key" : "value",
    x > bar && isNumeric(table, column) ? "numeric" : "",
    own === null ? "" : !own.opens ? "leaf" : own.open ? "opened" : "closed",
    isColoured ? "coloured" : "",
  ].join(" ");
  if (isColoured) cell.style.setProperty("--swatch", valueColor(column, own.group.label));
  else cell.style.removeProperty("--swatch");
  cell.title = own || x > bar ? (cell.textContent ?? "") : "";
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
  if (level > 0) return;
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
