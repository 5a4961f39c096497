// The axis of time below a picture.

import type { Range } from "../api/types";

/** Maps times to pixels and back. */
export interface Axis {
  readonly range: Range;
  /** Where the axis begins and ends, in pixels. */
  readonly from: number;
  readonly to: number;
}

/** Where a time is, in pixels. */
export function across(axis: Axis, ns: number): number {
  const [start, end] = axis.range;
  return axis.from + ((ns - start) / Math.max(end - start, 1)) * (axis.to - axis.from);
}

/** The time at a pixel, kept within the range. */
export function timeAt(axis: Axis, x: number): number {
  const [start, end] = axis.range;
  const share = (x - axis.from) / Math.max(axis.to - axis.from, 1);
  return Math.round(start + Math.min(Math.max(share, 0), 1) * (end - start));
}

/** Both ends in order, as a range that is at least a nanosecond long. */
export function rangeOf(one: number, other: number): Range {
  const [from, to] = [Math.min(one, other), Math.max(one, other)];
  return [from, Math.max(to, from + 1)];
}

/** The range made `factor` times as long around a time that keeps its place. */
export function zoomed([start, end]: Range, around: number, factor: number): Range {
  const from = Math.round(around - (around - start) * factor);
  return [from, Math.max(Math.round(around + (end - around) * factor), from + 1)];
}

/** Times at steps of 1, 2 or 5 × 10ⁿ, `count` or fewer. */
export function ticks([start, end]: Range, count: number): { step: number; at: number[] } {
  const least = Math.max((end - start) / Math.max(count, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least * 0.999)!;
  const at: number[] = [];
  for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) at.push(tick);
  return { step, at };
}
