// Where each call is in a flame graph: all weight is 1 wide, each depth is a row.

import type { Nodes } from "./answer";

/** Calls with their places. */
export interface FlameLayout {
  from: Float64Array;
  to: Float64Array;
  depth: Int32Array;
  /** The place after the last call below each. */
  next: Int32Array;
}

/** A part of the width. */
export type Part = [from: number, to: number];

/** Callees side by side under their caller, each as wide as its weight. */
export function layOut(nodes: Nodes, weights: number[]): FlameLayout {
  const length = nodes.parent.length;
  const [from, to] = [new Float64Array(length), new Float64Array(length)];
  const [depth, next] = [new Int32Array(length), new Int32Array(length)];
  let all = 0;
  for (let node = 0; node < length; node++) if (nodes.parent[node] === null) all += weights[node];
  /** Up to where each call's width is taken by its callees. */
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
  // Depth first: a call's subtree ends where the next of its depth or above begins.
  const open: number[] = [];
  for (let node = 0; node < length; node++) {
    while (open.length > depth[node]) next[open.pop()!] = node;
    open.push(node);
  }
  return { from, to, depth, next };
}

/** The calls that are at least `least` wide within a part of the width, and how deep they go. */
export function seen(layout: FlameLayout, [left, right]: Part, least: number): { nodes: number[]; rows: number } {
  const nodes: number[] = [];
  let rows = 0;
  for (let node = 0; node < layout.from.length; ) {
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

/** The call at a depth and a place of the width, or -1. */
export function callAt(layout: FlameLayout, depth: number, place: number): number {
  for (let node = 0; node < layout.from.length; ) {
    const holds = layout.from[node] <= place && place < layout.to[node];
    if (holds && layout.depth[node] === depth) return node;
    node = holds ? node + 1 : layout.next[node];
  }
  return -1;
}
