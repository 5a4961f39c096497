// Merging of the call trees of two traces, to compare them.

import type { FlameAnswer, Nodes } from "../api/types";
import { calleesOf } from "./calls";

/** Merges two call trees. Calls that exist only in `other` have the weight 0. */
export function joined(one: FlameAnswer, other: FlameAnswer): FlameAnswer {
  const frames = [...one.frames];
  const places = new Map(frames.map((name, place) => [name, place]));
  const nodes: Nodes = { parent: [], frame: [], self: [], total: [], compared: [] };
  const [mine, theirs] = [byName(one), byName(other)];
  const add = (parent: number | null, at: number, there: number, name: string) => {
    let frame = places.get(name);
    if (frame === undefined) places.set(name, (frame = frames.push(name) - 1));
    const node = nodes.parent.push(parent) - 1;
    nodes.frame.push(frame);
    nodes.self.push(at < 0 ? 0 : one.nodes.self[at]);
    nodes.total.push(at < 0 ? 0 : one.nodes.total[at]);
    nodes.compared!.push(there < 0 ? 0 : other.nodes.total[there]);
    below(node, at < 0 ? NONE : mine.callees[at], there < 0 ? NONE : theirs.callees[there]);
  };
  const below = (parent: number | null, these: Map<string, number>, those: Map<string, number>) => {
    for (const [name, at] of these) add(parent, at, those.get(name) ?? -1, name);
    for (const [name, there] of those) if (!these.has(name)) add(parent, -1, there, name);
  };
  below(null, mine.outermost, theirs.outermost);
  return { ...one, compared_total: other.total, frames, nodes };
}

const NONE = new Map<string, number>();

/** Returns the outermost calls by name, and the callees of each call by name. */
function byName({ frames, nodes }: FlameAnswer): { outermost: Map<string, number>; callees: Map<string, number>[] } {
  const named = (calls: number[]) => new Map(calls.map((node) => [frames[nodes.frame[node]], node]));
  const outermost = nodes.parent.flatMap((parent, node) => (parent === null ? [node] : []));
  return { outermost: named(outermost), callees: calleesOf(nodes).map(named) };
}
