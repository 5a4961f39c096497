// Navigation between the calls of a flame graph.

import type { Nodes } from "../api/types";
import type { FlameLayout } from "./layout";

/** Returns the callee with the largest weight, or -1 if there are no callees. */
export function heaviestCallee(layout: FlameLayout, node: number, weights: ArrayLike<number>): number {
  let heaviest = -1;
  for (const callee of callees(layout, node)) {
    if (heaviest < 0 || weights[callee] > weights[heaviest]) heaviest = callee;
  }
  return heaviest;
}

/** Returns the direct callees of a call. */
export function callees(layout: FlameLayout, node: number): number[] {
  const found: number[] = [];
  for (let callee = node + 1; callee < layout.next[node]; callee = layout.next[callee]) found.push(callee);
  return found;
}

/** Returns the next or previous call with the same caller, or -1 if there is none. */
export function sibling(nodes: Nodes, layout: FlameLayout, node: number, step: 1 | -1): number {
  const parent = nodes.parent[node];
  const end = parent === null ? layout.next.length : layout.next[parent];
  if (step > 0) return layout.next[node] < end ? layout.next[node] : -1;
  let before = -1;
  for (let other = parent === null ? 0 : parent + 1; other < node; other = layout.next[other]) before = other;
  return before;
}

/** Returns the frames of the path to a call, outermost first. The last frame is the frame of the call. */
export function pathOf(frames: string[], nodes: Nodes, node: number): string[] {
  const path: string[] = [];
  for (let at: number | null = node; at !== null; at = nodes.parent[at]) path.unshift(frames[nodes.frame[at]]);
  return path;
}

/**
 * Returns the call at the end of a path. If the path does not exist completely, returns the last call of
 * the path that exists, or -1 if none exists.
 */
export function callOf(frames: string[], nodes: Nodes, layout: FlameLayout, path: string[]): number {
  let found = -1;
  let [from, end] = [0, layout.next.length];
  for (const name of path) {
    let at = from;
    while (at < end && frames[nodes.frame[at]] !== name) at = layout.next[at];
    if (at >= end) break;
    found = at;
    [from, end] = [at + 1, layout.next[at]];
  }
  return found;
}
