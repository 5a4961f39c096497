// Differences of the weights of calls between two time ranges or traces.

import type { FlameAnswer, Nodes } from "../api/types";

/** Weights that are 100 %: of this time range or trace, and of the other time range or trace. */
export type Wholes = [mine: number, theirs: number];

/** Shares of each call: in this time range or trace, and in the other time range or trace. */
export type Shares = [mine: Float64Array, theirs: Float64Array];

/** Returns the shares of all calls; `null` if nothing is compared. By default, the totals are 100 %. */
export function sharesOf({ nodes, total, compared_total }: FlameAnswer, wholes?: Wholes): Shares | null {
  if (!nodes.compared) return null;
  const [mine, theirs] = wholes ?? [total, compared_total ?? 0];
  const share = (of: number) => (weight: number) => (of > 0 ? weight / of : 0);
  return [Float64Array.from(nodes.total, share(mine)), Float64Array.from(nodes.compared, share(theirs))];
}

/** Returns for each call: its share in this time range or trace minus its share in the other time range or trace. */
export function differences([mine, theirs]: Shares): Float64Array {
  return mine.map((share, node) => share - theirs[node]);
}

/**
 * Returns the widths of the calls in the union of both trees. A call has the larger of its shares. It is wider if
 * its callees would not fit below it.
 */
export function unionWidths({ parent }: Nodes, [mine, theirs]: Shares): number[] {
  const widths = Array.from(mine, (share, node) => Math.max(share, theirs[node]));
  const callees = new Float64Array(widths.length);
  // Callees follow their callers.
  for (let node = widths.length - 1; node >= 0; node--) {
    widths[node] = Math.max(widths[node], callees[node]);
    const caller = parent[node];
    if (caller !== null) callees[caller] += widths[node];
  }
  return widths;
}

/** Returns the largest absolute value of the differences. */
export function greatest(differences: Float64Array): number {
  let greatest = 0;
  for (const difference of differences) greatest = Math.max(greatest, Math.abs(difference));
  return greatest;
}

/** Formats a difference of shares in percentage points, such as `▲ 3.2 pp` or `▼ 0.50 pp`. */
export function changed(difference: number): string {
  const points = Math.abs(difference * 100);
  if (points < 0.005) return "no change";
  return `${difference > 0 ? "▲" : "▼"} ${points.toFixed(points < 0.995 ? 2 : 1)} pp`;
}
