// Histograms of several traces on the same axes.

import type { HistogramAnswer, Range } from "../api/types";

/** Returns the smallest range that contains the values of all histograms; `null` if no histogram has values. */
export function commonValues(answers: readonly HistogramAnswer[]): Range | null {
  const filled = answers.filter(({ series, bounds }) => series.length > 0 && bounds.length > 1);
  if (filled.length === 0) return null;
  const least = Math.min(...filled.map(({ bounds }) => bounds[0] + 1));
  const greatest = Math.max(...filled.map(({ bounds }) => bounds[bounds.length - 1]));
  return [Math.max(least, 1), Math.max(greatest, 1)];
}

/** Returns the number of values in each class, of all series together. */
export function sumsOf({ bounds, series }: HistogramAnswer): number[] {
  const sums = new Array<number>(Math.max(bounds.length - 1, 0)).fill(0);
  for (const { counts } of series) counts.forEach((one, place) => (sums[place] += one));
  return sums;
}

/** Returns the share of the values in each class, 0 to 1. */
export function sharesOf(answer: HistogramAnswer): number[] {
  const sums = sumsOf(answer);
  const total = sums.reduce((one, other) => one + other, 0);
  return sums.map((sum) => (total > 0 ? sum / total : 0));
}
