// Visible time range of the graphs.

import type { Range } from "../api/types";

/** Minimum length of the visible range, in nanoseconds. */
export const SHORTEST = 1_000;

/** Limits a time range to the trace and to the minimum length. The result has whole nanoseconds. */
export function within([from, to]: Range, whole: Range): Range {
  const length = Math.min(Math.max(Math.round(to - from), SHORTEST), whole[1] - whole[0]);
  const start = Math.min(Math.max(Math.round(from), whole[0]), whole[1] - length);
  return [start, start + length];
}

/** Moves a time range by a share of its length. For example, -0.1 moves it to the left by a tenth. */
export function panned([from, to]: Range, share: number, whole: Range): Range {
  const by = (to - from) * share;
  return within([from + by, to + by], whole);
}

/**
 * Scales a time range by `factor`. The time `around` stays at the same position. By default, it is the
 * middle.
 */
export function zoomed([from, to]: Range, factor: number, whole: Range, around = (from + to) / 2): Range {
  return within([around - (around - from) * factor, around + (to - around) * factor], whole);
}

/** Returns a time range that contains another range and has margins on both sides. */
export function around([from, to]: Range, whole: Range): Range {
  const margin = Math.max((to - from) * 0.1, SHORTEST);
  return within([from - margin, to + margin], whole);
}

/** Returns true if two ranges are equal. */
export function same(one: Range | null, other: Range | null): boolean {
  return one === other || (one !== null && other !== null && one[0] === other[0] && one[1] === other[1]);
}

/**
 * Parses a time such as `1.5`, `20ms` or `30.333 s`, and returns nanoseconds. Returns `null` if the text is
 * invalid.
 */
export function parseTime(text: string): number | null {
  const match = /^\s*(\d+(?:[.,]\d*)?|[.,]\d+)\s*(s|ms|us|µs|μs|ns)?\s*$/.exec(text);
  if (!match) return null;
  const unit = { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, μs: 1e3, ns: 1 }[match[2] ?? "s"] ?? 1e9;
  return Math.round(Number(match[1].replace(",", ".")) * unit);
}
