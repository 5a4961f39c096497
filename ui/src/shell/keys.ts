// Global keyboard shortcuts.

import { page } from "../view/state.svelte";

/** Returns true if the element with the focus handles the key itself. */
function isTaken(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return (
    event.defaultPrevented || target.closest("input, textarea, select, dialog, [contenteditable], .popover") !== null
  );
}

/** Handles keys that change the visible time range. Returns true if the key had an effect. */
export function pressed(event: KeyboardEvent): boolean {
  if (isTaken(event) || event.ctrlKey || event.metaKey || event.altKey) return false;
  const far = event.shiftKey ? 0.5 : 0.1;
  switch (event.key) {
    case "ArrowLeft":
      page.pan(-far);
      return true;
    case "ArrowRight":
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

/** Keys with their descriptions for the help. */
export const KEYS: [string, string][] = [
  ["← →", "move through time; faster with Shift"],
  ["+ −", "zoom in, zoom out"],
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
  ["Shift F10", "context menu of a row or column"],
];
