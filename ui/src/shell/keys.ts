// Keys that hold wherever nothing else takes them.

import { page } from "../view/state.svelte";

/** Whether a key is meant for what it was pressed in. */
function isTaken(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return event.defaultPrevented || target.closest("input, textarea, select, dialog, [contenteditable], .popover") !== null;
}

/** What a key does to the axis of time; whether it did anything. */
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

/** Keys and what they do, to be shown. */
export const KEYS: [string, string][] = [
  ["← →", "move through time; with Shift farther"],
  ["+ −", "look closer, look from farther away"],
  ["Home", "see the whole trace"],
  ["drag", "select a stretch of time: tables tell of it"],
  ["z", "zoom to what is selected; so does a double click in it"],
  ["Ctrl wheel", "zoom at the pointer"],
  ["Esc", "select nothing"],
  ["Alt ← / Alt →", "back and forward, as in any page"],
  ["click a series", "in the graph: its rows are selected; in the legend: it is hidden; with Alt: alone"],
  ["↑ ↓ ← → Enter", "in a table: rows, close and open them; Space selects, Ctrl C copies"],
  ["Alt ← →", "on a column's head: moves it, over the golden bar too; Enter sorts, Delete removes"],
  ["in a timeline, once Tab led there", "← → from moment to moment with the values, with Shift farther"],
  ["in CPU lanes", "← → runs, ↑ ↓ processors, Enter explains a run, S selects its time; with Shift ← → through time"],
  ["in a heat map", "arrows go from cell to cell, with Shift they choose, Enter chooses one"],
  ["in a flame graph", "arrows go along calls, Enter widens one, Backspace its caller, B callers and callees"],
  ["Shift F10", "more for a row or a column, as the right button"],
];
