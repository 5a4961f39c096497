// Positions of calls in a flame graph. The width of the whole graph is 1. Each depth is a row.

import type { Nodes } from "../api/types";

/** Positions of all calls. */
export interface FlameLayout {
  from: Float64Array;
  to: Float64Array;
  depth: Int32Array;
  /** For each call, the index after its last descendant. */
  next: Int32Array;
}

/** Part of the graph's width, between 0 and 1. */
export type Part = [from: number, to: number];

/**
 * Computes the positions. Callees are next to each other below their caller, and their widths are
 * proportional to their weights. `whole` is the weight that is as wide as the graph; the sum of all weights if
 * absent.
 */
export function layOut(nodes: Nodes, weights: ArrayLike<number>, whole?: number): FlameLayout {
  const length = nodes.parent.length;
  const [from, to] = [new Float64Array(length), new Float64Array(length)];
  const [depth, next] = [new Int32Array(length), new Int32Array(length)];
  const all = whole ?? outermostSum(nodes, weights);
  // For each call, the right end of the callees that are placed so far.
  const taken = new Float64Array(length);
  let outermost = 0;
  for (let node = 0; node < length; node++) {
    const parent = nodes.parent[node];
    const width = all > 0 ? weights[node] / all : 0;
    from[node] = parent === null ? outermost : taken[parent];
    to[node] = from[node] + width;
    taken[node] = from[node];
    depth[node] = parent === null ? 0 : depth[parent] + 1;
    if (parent === null) outermost = to[node];
    else taken[parent] = to[node];
  }
  next.fill(length);
  // Calls are in depth-first order. The descendants of a call end before the next call with the same or a smaller
  // depth.
  const open: number[] = [];
  for (let node = 0; node < length; node++) {
    while (open.length > depth[node]) next[open.pop()!] = node;
    open.push(node);
  }
  return { from, to, depth, next };
}

/** Returns the sum of the weights of the outermost calls. */
export function outermostSum({ parent }: Nodes, weights: ArrayLike<number>): number {
  return parent.reduce((sum: number, caller, node) => (caller === null ? sum + weights[node] : sum), 0);
}

/** Returns the calls whose visible width is at least `least`, and the number of rows that they need. */
export function visibleCalls(
  layout: FlameLayout,
  [left, right]: Part,
  least: number,
): { nodes: number[]; rows: number } {
  const nodes: number[] = [];
  let rows = 0;
  for (let node = 0; node < layout.from.length;) {
    const width = Math.min(layout.to[node], right) - Math.max(layout.from[node], left);
    if (width < least) {
      node = layout.next[node];
      continue;
    }
    nodes.push(node);
    rows = Math.max(rows, layout.depth[node] + 1);
    node += 1;
  }
  return { nodes, rows };
}

/** Returns the call at a depth and a horizontal position, or -1 if there is no call. */
export function callAt(layout: FlameLayout, depth: number, place: number): number {
  for (let node = 0; node < layout.from.length;) {
    const holds = layout.from[node] <= place && place < layout.to[node];
    if (holds && layout.depth[node] === depth) return node;
    node = holds ? node + 1 : layout.next[node];
  }
  return -1;
}
