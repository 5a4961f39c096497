// Time axis of a graph.

import type { Range } from "../api/types";

/** Mapping between times and pixels. */
export interface Axis {
  readonly range: Range;
  /** Start and end of the axis, in pixels. */
  readonly from: number;
  readonly to: number;
}

/** Returns the pixel position of a time. */
export function across(axis: Axis, ns: number): number {
  const [start, end] = axis.range;
  return axis.from + ((ns - start) / Math.max(end - start, 1)) * (axis.to - axis.from);
}

/** Returns the time at a pixel position, limited to the range of the axis. */
export function timeAt(axis: Axis, x: number): number {
  const [start, end] = axis.range;
  const share = (x - axis.from) / Math.max(axis.to - axis.from, 1);
  return Math.round(start + Math.min(Math.max(share, 0), 1) * (end - start));
}

/** Returns the range between two times, which can be in any order. It has at least one nanosecond. */
export function rangeOf(one: number, other: number): Range {
  const [from, to] = [Math.min(one, other), Math.max(one, other)];
  return [from, Math.max(to, from + 1)];
}

/** Scales the range by `factor`. The time `around` stays at the same position of the axis. */
export function zoomed([start, end]: Range, around: number, factor: number): Range {
  const from = Math.round(around - (around - start) * factor);
  return [from, Math.max(Math.round(around + (end - around) * factor), from + 1)];
}

/** Returns at most `count` + 1 times within the range. Their distance is 1, 2 or 5 × 10ⁿ. */
export function ticks([start, end]: Range, count: number): { step: number; at: number[] } {
  const least = Math.max((end - start) / Math.max(count, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least * 0.999)!;
  const at: number[] = [];
  for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) at.push(tick);
  return { step, at };
}
