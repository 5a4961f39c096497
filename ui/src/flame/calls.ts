// Rows of a call tree in which some calls are expanded.

import type { Nodes } from "../api/types";

/** Row that shows one call. */
export interface CallRow {
  node: number;
  /** Level of indentation. */
  level: number;
  /** True if the row can be expanded. */
  opens: boolean;
  /** True if the row is expanded. */
  open: boolean;
}

/** Returns the callees of each call, sorted by descending weight. */
export function calleesOf(nodes: Nodes): number[][] {
  const callees: number[][] = nodes.parent.map(() => []);
  nodes.parent.forEach((parent, node) => {
    if (parent !== null) callees[parent].push(node);
  });
  for (const list of callees) list.sort((one, other) => nodes.total[other] - nodes.total[one]);
  return callees;
}

/** Returns the visible rows below the first call. */
export function callRows(callees: number[][], open: ReadonlySet<number>): CallRow[] {
  const rows: CallRow[] = [];
  const waiting = (callees[0] ?? []).map((node) => ({ node, level: 0 })).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, level } = next;
    const opens = callees[node].length > 0;
    rows.push({ node, level, opens, open: open.has(node) });
    if (!open.has(node)) continue;
    for (const callee of callees[node].toReversed()) waiting.push({ node: callee, level: level + 1 });
  }
  return rows;
}

/**
 * Returns the calls that are expanded initially. They form the path on which each call has more than half of
 * the total weight.
 */
export function hotPath(nodes: Nodes, callees: number[][]): Set<number> {
  const open = new Set<number>();
  for (let at = 0; callees[at]?.length > 0;) {
    const heaviest = callees[at][0];
    if (nodes.total[heaviest] * 2 <= nodes.total[0]) break;
    open.add(heaviest);
    at = heaviest;
  }
  return open;
}
