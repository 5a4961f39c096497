// Words and numbers of a comparison.

import type { ComparedRow } from "../api/types";
import { count, duration } from "../format";

/** Returns the change of a row, in nanoseconds per unit. */
export function difference({ before_ns, after_ns }: ComparedRow): number {
  return after_ns - before_ns;
}

/** Formats a change with its sign and an arrow. */
export function signed(ns: number): string {
  if (ns === 0) return "no change";
  return `${ns > 0 ? "▲ +" : "▼ −"}${duration(Math.abs(ns))}`;
}

/** Formats the ratio of the values after and before the change. A row that only one side has is new or gone. */
export function ratio(before: number, after: number): string {
  if (before === 0) return after === 0 ? "–" : "new";
  if (after === 0) return "gone";
  const times = after / before;
  return `× ${times >= 100 ? count(times) : Number(times.toPrecision(3))}`;
}

/** Formats a number of things per unit. */
export function rate(number: number): string {
  return number >= 100 ? count(number) : String(Number(number.toPrecision(3)));
}

/** Formats a ratio as a factor or a divisor. */
export function times(ratio: number): string {
  return ratio < 1 ? `÷ ${rate(1 / ratio)}` : `× ${rate(ratio)}`;
}

/** Returns the name of a quantile, such as `p99.9`. */
export function quantile(share: number): string {
  return `p${Number((share * 100).toFixed(1))}`;
}
