// Differences of the weights of calls between two time ranges or traces.

import type { FlameAnswer } from "../api/types";

/**
 * Returns, for each call, its share of the weight minus its share in the other time range or trace: -1 to 1.
 */
export function differences({ nodes, total, compared_total }: FlameAnswer): Float64Array | null {
  const { compared } = nodes;
  if (!compared) return null;
  const share = (weight: number, of: number | null) => (of !== null && of > 0 ? weight / of : 0);
  return Float64Array.from(nodes.total, (weight, node) => share(weight, total) - share(compared[node], compared_total));
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
