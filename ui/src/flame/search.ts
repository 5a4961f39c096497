// Finding frames by their names.

import type { Nodes } from "./answer";

/** What a text asks for: a part of a name in any case, or a pattern between slashes. */
export function matcher(text: string): ((name: string) => boolean) | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const pattern = /^\/(.+)\/$/.exec(trimmed);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], "i");
      return (name) => expression.test(name);
    } catch {
      // Not a pattern yet: it is looked for as it stands.
    }
  }
  const lower = trimmed.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

/** For each frame whether its name matches; nothing if nothing is asked for. */
export function matchingFrames(frames: string[], text: string): boolean[] | null {
  const matches = matcher(text);
  return matches && frames.map(matches);
}

/** The weight of calls that match, each stack counted once. */
export function matchedWeight(nodes: Nodes, matching: boolean[], weights: number[]): number {
  const within = new Uint8Array(nodes.parent.length);
  let sum = 0;
  for (let node = 0; node < nodes.parent.length; node++) {
    const parent = nodes.parent[node];
    const inside = parent !== null && within[parent] === 1;
    const matches = matching[nodes.frame[node]];
    if (matches && !inside) sum += weights[node];
    within[node] = inside || matches ? 1 : 0;
  }
  return sum;
}
