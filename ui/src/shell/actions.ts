// Actions of the page that have a name, for the palette.

import { page } from "../view/state.svelte";

/** Action with its name, and the key that has the same effect. */
export interface Action {
  title: string;
  detail?: string;
  key?: string;
  choose: () => void;
}

/** Lets the user choose a file with a view. */
function chooseView(): void {
  const field = document.createElement("input");
  field.type = "file";
  field.accept = ".json";
  field.onchange = () => {
    const file = field.files?.[0];
    if (file) void page.openView(file);
  };
  field.click();
}

/** Returns the actions that are possible now. */
export function actions(): Action[] {
  const { screen } = page;
  const traces = page.session?.traces ?? [];
  return [
    { title: "Show the overview", key: "1", choose: () => page.go({ page: "overview" }) },
    { title: "Show the analysis", key: "2", choose: () => page.go({ page: "analysis" }) },
    ...(page.session?.sql ? [{ title: "Show SQL", key: "3", choose: () => page.go({ page: "sql" }) }] : []),
    ...(page.session?.comparison
      ? [{ title: "Show the comparison", choose: () => page.go({ page: "comparison" }) }]
      : []),
    { title: "Show the whole trace", key: "Home", choose: () => page.zoomTo(null) },
    ...(screen.selection
      ? [
          { title: "Zoom to the selection", key: "z", choose: () => page.zoomToSelection() },
          { title: "Clear the selection", key: "Esc", choose: () => page.select(null) },
        ]
      : []),
    { title: "Zoom in", key: "w", choose: () => page.zoomBy(0.5) },
    { title: "Zoom out", key: "s", choose: () => page.zoomBy(2) },
    { title: "New tab", choose: () => page.addTab(`Analysis ${screen.tabs.length + 1}`) },
    {
      title: screen.selection ? "Note about the selection" : "Note about the visible time",
      key: "n",
      choose: () => page.addNote(page.main?.trace.id ?? 0, screen.selection ?? page.range),
    },
    { title: "Save view as a file", detail: "tabs, graphs, filters and notes", choose: () => page.saveView() },
    { title: "Open a saved view …", choose: chooseView },
    { title: "Start over", detail: "forget tabs, filters and notes", choose: () => page.forgetWorkspace() },
    ...(screen.filter.length > 0
      ? [{ title: "Remove the filters of all graphs", choose: () => page.go({ filter: [] }) }]
      : []),
    {
      title: page.showMarks ? "Hide marks in graphs" : "Show marks in graphs",
      choose: () => (page.showMarks = !page.showMarks),
    },
    ...traces
      .filter(({ id }) => traces.length > 1 && !(screen.traces.length === 1 && screen.traces[0] === id))
      .map(({ id, name }) => ({ title: `Show only ${name}`, choose: () => page.go({ traces: [id] }) })),
    { title: "Theme: light", choose: () => (page.theme = "light") },
    { title: "Theme: dark", choose: () => (page.theme = "dark") },
    { title: "Theme: as the system", choose: () => (page.theme = "system") },
    { title: "Back", key: "Alt ←", choose: () => history.back() },
    { title: "Forward", key: "Alt →", choose: () => history.forward() },
  ];
}
