// The stretch of time that is looked at.

import type { Range } from "../api/types";

/** The shortest stretch that is shown: below it there is nothing to see. */
export const SHORTEST = 1_000;

/** Kept within the trace and not too short; whole nanoseconds. */
export function within([from, to]: Range, whole: Range): Range {
  const length = Math.min(Math.max(Math.round(to - from), SHORTEST), whole[1] - whole[0]);
  const start = Math.min(Math.max(Math.round(from), whole[0]), whole[1] - length);
  return [start, start + length];
}

/** Moved by a share of its length: a tenth to the left is -0.1. */
export function panned([from, to]: Range, share: number, whole: Range): Range {
  const by = (to - from) * share;
  return within([from + by, to + by], whole);
}

/** Made `factor` times as long around a time that keeps its place; its middle if none is given. */
export function zoomed([from, to]: Range, factor: number, whole: Range, around = (from + to) / 2): Range {
  return within([around - (around - from) * factor, around + (to - around) * factor], whole);
}

/** A stretch to look at that shows another with something around it. */
export function around([from, to]: Range, whole: Range): Range {
  const margin = Math.max((to - from) * 0.1, SHORTEST);
  return within([from - margin, to + margin], whole);
}

/** Whether they are the same. */
export function same(one: Range | null, other: Range | null): boolean {
  return one === other || (one !== null && other !== null && one[0] === other[0] && one[1] === other[1]);
}

/** A time as people type it (`1.5`, `20ms`, `30.333 s`): nanoseconds, or none if it is no time. */
export function parseTime(text: string): number | null {
  const match = /^\s*(\d+(?:[.,]\d*)?|[.,]\d+)\s*(s|ms|us|µs|μs|ns)?\s*$/.exec(text);
  if (!match) return null;
  const unit = { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, μs: 1e3, ns: 1 }[match[2] ?? "s"] ?? 1e9;
  return Math.round(Number(match[1]!.replace(",", ".")) * unit);
}
