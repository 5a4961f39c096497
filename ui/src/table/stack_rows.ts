// Rows of a stack column: the calls of a group's stacks, frame by frame.

import type { Cell, FlameAnswer, PivotGroup } from "../api/types";

/** Call of a tree that joins the call trees of several weights. */
interface Call {
  name: string;
  /** Weight of each call tree. */
  weights: (number | null)[];
  callees: Map<string, Call>;
}

/** Returns an id for the name of a frame. It is the FNV-1a hash, so that open rows stay open in other answers. */
export function frameId(name: string): number {
  let state = 0x811c9dc5;
  for (const unit of name) state = Math.imul(state ^ unit.codePointAt(0)!, 0x01000193);
  return state >>> 0;
}

/**
 * Joins call trees of the same stacks with different weights. If a tree omits a call, the weight of the call in this
 * tree is unknown.
 */
export function joinedCalls(trees: readonly FlameAnswer[]): Map<string, Call> {
  const roots = new Map<string, Call>();
  trees.forEach(({ frames, nodes }, tree) => {
    const made: Call[] = [];
    nodes.frame.forEach((frame, node) => {
      const parent = nodes.parent[node];
      const level = parent === null ? roots : made[parent].callees;
      const name = frames[frame];
      let call = level.get(name);
      if (!call) {
        call = { name, weights: Array<number | null>(trees.length).fill(null), callees: new Map() };
        level.set(name, call);
      }
      call.weights[tree] = (call.weights[tree] ?? 0) + nodes.total[node];
      made[node] = call;
    });
  });
  return roots;
}

/**
 * Returns the rows of the calls below a path of frame ids. `columns` maps each column of the table to the index of its
 * call tree; `null` if calls have no value in this column. `by` is the tree whose weights order the rows.
 */
export function callRows(
  roots: ReadonlyMap<string, Call>,
  path: readonly (number | null)[],
  columns: readonly (number | null)[],
  by: number,
): PivotGroup[] {
  let level = roots;
  for (const id of path) {
    const next = [...level.values()].find(({ name }) => frameId(name) === id);
    if (!next) return [];
    level = next.callees;
  }
  return [...level.values()]
    .sort((one, other) => (other.weights[by] ?? 0) - (one.weights[by] ?? 0))
    .map(({ name, weights, callees }) => ({
      id: frameId(name),
      label: name,
      rows: weights[0] ?? 0,
      values: columns.map((tree): Cell => (tree === null ? null : weights[tree])),
      leaf: callees.size === 0,
    }));
}
