// Items of menus about a time, which all graphs have.

import { moment } from "../format";
import type { OpenTrace } from "../view/open_trace.svelte";
import { page } from "../view/state.svelte";
import type { Choices } from "./menu";

/** Returns the items of a menu about a time of a trace. */
export function timeChoices(opened: OpenTrace, at: number): Choices {
  const [from, to] = page.range;
  const time = moment(at, (to - from) / 1000);
  const { selection } = page.screen;
  const lanes = page.main?.presets.find(({ view }) => view.graph.kind === "lanes");
  const hasRuns = opened.table("cpu_runs")?.recorded !== false;
  return [
    { label: "Zoom to the selection", key: "z", disabled: !selection, choose: () => page.zoomToSelection() },
    { label: `Zoom in at ${time}`, key: "Ctrl wheel", choose: () => page.zoomBy(0.2, at) },
    { label: "Show the whole trace", key: "Home", disabled: !page.screen.range, choose: () => page.zoomTo(null) },
    null,
    ...(lanes && hasRuns
      ? [
          {
            label: `Who ran at ${time}`,
            choose: () => {
              page.addPanel(lanes.view, lanes.name);
              const half = Math.min((to - from) / 20, 50e6);
              page.zoomTo([at - half, at + half]);
            },
          },
        ]
      : []),
    {
      label: selection ? "Note about the selection …" : `Note at ${time} …`,
      choose: () => page.addNote(opened.trace.id, selection ?? [at, at]),
    },
    {
      label: `Copy the time ${time}`,
      choose: () => void page.copy(String(at / 1e9), "Time copied."),
    },
  ];
}
