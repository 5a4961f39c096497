// Global keyboard shortcuts.

import { page } from "../view/state.svelte";

/** Returns true if the element with the focus handles the key itself. */
function isTaken(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return (
    event.defaultPrevented || target.closest("input, textarea, select, dialog, [contenteditable], .popover") !== null
  );
}

/** Handles the shortcuts that `KEYS` describes. Returns true if the key had an effect. */
export function pressed(event: KeyboardEvent): boolean {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    page.palette = !page.palette;
    return true;
  }
  if (isTaken(event) || event.ctrlKey || event.metaKey || event.altKey) return false;
  const far = event.shiftKey ? 0.5 : 0.1;
  switch (event.key) {
    case "ArrowLeft":
    case "a":
    case "A":
      page.pan(-far);
      return true;
    case "ArrowRight":
    case "d":
    case "D":
      page.pan(far);
      return true;
    case "+":
    case "=":
      page.zoomBy(0.5);
      return true;
    case "-":
    case "_":
      page.zoomBy(2);
      return true;
    case "Home":
      page.zoomTo(null);
      return true;
    case "w":
    case "W":
      page.zoomBy(event.shiftKey ? 0.25 : 0.7, page.hover ?? undefined);
      return true;
    case "s":
    case "S":
      page.zoomBy(event.shiftKey ? 4 : 1 / 0.7, page.hover ?? undefined);
      return true;
    case "n":
      page.addNote(page.main?.trace.id ?? 0, page.screen.selection ?? page.range);
      return true;
    case "/":
      return focusSearch();
    case "1":
    case "2":
    case "3":
      return toPage((["overview", "analysis", "sql"] as const)[Number(event.key) - 1]);
    case "?":
      page.help = true;
      return true;
    case "z":
      page.zoomToSelection();
      return true;
    case "Escape":
      if (page.screen.wait) page.go({ wait: null });
      else page.select(null);
      return true;
    default:
      return false;
  }
}

/** Shows a page, if there is one with this name. */
function toPage(name: "overview" | "analysis" | "sql"): boolean {
  if (name === "sql" && !page.session?.sql) return false;
  page.go({ page: name });
  return true;
}

/** Moves the focus to the field that finds graphs. */
function focusSearch(): boolean {
  if (page.screen.page !== "analysis") page.go({ page: "analysis" });
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLInputElement>('nav[aria-label="Graphs"] input');
    if (field) field.focus();
    else page.palette = true;
  });
  return true;
}

/** Keys with their descriptions for the help. */
export const KEYS: [string, string][] = [
  ["Ctrl K", "command palette: find graphs, processes, threads, functions, findings, tables and actions"],
  ["/", "find a graph"],
  ["1 2 3", "overview, analysis, SQL"],
  ["a d, ← →", "move through time; faster with Shift"],
  ["w s, + −", "zoom in, zoom out; w and s zoom at the pointer"],
  ["n", "note about the selection or the visible time"],
  ["Home", "show the whole trace"],
  ["drag", "select a time range; tables show this range"],
  ["z", "zoom to the selection; also a double click in it"],
  ["Ctrl wheel", "zoom at the pointer"],
  ["Esc", "clear the selection"],
  ["Alt ← / Alt →", "back and forward in history"],
  ["click a series", "in the graph: select its rows; in the legend: hide it; Alt + click: show only this"],
  ["↑ ↓ ← → Enter", "in a table: move, collapse, expand; Space selects, Ctrl C copies"],
  ["Alt ← →", "on a column header: move it, also across the golden bar; Enter sorts, Delete removes"],
  ["in a timeline (Tab)", "← → show values over time; faster with Shift"],
  ["in CPU lanes", "← → runs, ↑ ↓ CPUs, Enter explains a run, S selects its time; Shift ← → through time"],
  ["in a heat map", "arrows move between cells, Shift + arrows select, Enter selects a cell"],
  [
    "in a flame graph",
    "arrows move between calls, Enter zooms in, Backspace zooms to the caller, B shows callers and callees",
  ],
  ["Shift F10", "context menu of a row, a column or a graph, as the right mouse button"],
];
