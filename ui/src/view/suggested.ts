// Graphs with which an analysis can start.

import type { Finding, Preset } from "../api/types";

/** Number of suggested graphs. */
const WANTED = 3;

/**
 * Returns the built-in views that fit the findings: views of the tables that hold their evidence, the most important
 * finding first. The remaining places are filled with graphs of the overview. No two views have the same table and the
 * same measure.
 */
export function suggested(
  findings: readonly Finding[],
  presets: readonly Preset[],
  overview: readonly Preset[],
): Preset[] {
  const chosen: Preset[] = [];
  const add = (preset: Preset | undefined) => {
    if (preset && chosen.length < WANTED && !chosen.some(({ view }) => isSame(view, preset.view))) chosen.push(preset);
  };
  for (const { severity, evidence } of findings) {
    if (severity === "information") continue;
    for (const { view } of evidence) {
      if (!view) continue;
      // The view with the same measure shows the delay itself, for example the time in which a thread was ready.
      const same = presets.filter(
        (preset) => preset.view.table === view.table && preset.view.graph.kind === "timeline",
      );
      add(same.find((preset) => preset.view.graph.measure === view.graph.measure) ?? same[0]);
    }
  }
  for (const preset of overview) add(preset);
  return chosen;
}

const isSame = (one: Preset["view"], other: Preset["view"]) =>
  one.table === other.table && one.graph.measure === other.graph.measure;
