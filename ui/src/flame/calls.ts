// A tree of calls as rows of a table, of which some are open.

import type { Nodes } from "./answer";

/** A call in a table. */
export interface CallRow {
  node: number;
  /** How far it is indented. */
  level: number;
  /** Whether it can be opened, and is. */
  opens: boolean;
  open: boolean;
}

/** A call's callees, the heaviest first; by call. */
export function calleesOf(nodes: Nodes): number[][] {
  const callees: number[][] = nodes.parent.map(() => []);
  nodes.parent.forEach((parent, node) => {
    if (parent !== null) callees[parent].push(node);
  });
  for (const list of callees) list.sort((one, other) => nodes.total[other] - nodes.total[one]);
  return callees;
}

/** The calls below the first, as far as they are open. */
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

/** The calls to be opened at first: where most of the weight leads, as long as it is more than half. */
export function hotPath(nodes: Nodes, callees: number[][]): Set<number> {
  const open = new Set<number>();
  for (let at = 0; callees[at]?.length > 0; ) {
    const heaviest = callees[at][0];
    if (nodes.total[heaviest] * 2 <= nodes.total[0]) break;
    open.add(heaviest);
    at = heaviest;
  }
  return open;
}
