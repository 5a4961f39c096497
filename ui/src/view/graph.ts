// Choices of a graph with their labels. Each list has all values of its type, so TypeScript reports a missing one.

import type { Drawn, GraphKind, TimelineFunction } from "../api/types";

export const KINDS: Record<GraphKind, string> = {
  timeline: "Timeline",
  lanes: "CPU lanes",
  heat: "Heat map",
  histogram: "Histogram",
  flame: "Flame graph",
  none: "None",
};

export const FUNCTIONS: Record<TimelineFunction, string> = {
  sum: "sum",
  mean: "mean",
  max: "max",
  min: "min",
  count: "count",
};

export const DRAWN: Record<Drawn, string> = {
  stacked: "stacked areas",
  lines: "lines",
  lanes: "lanes",
};

/** Returns the value if it is one of the choices. */
export function choice<Key extends string>(choices: Record<Key, string>, value: unknown): Key | undefined {
  return choicesOf(choices).find((key) => key === value);
}

/** Returns all choices in order. */
export function choicesOf<Key extends string>(choices: Record<Key, string>): Key[] {
  return Object.keys(choices) as Key[];
}
