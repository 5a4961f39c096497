// Search for frames by name.

import type { Nodes } from "../api/types";

/**
 * Returns a function that tests names. The search text is a part of a name, ignoring case, or a pattern
 * between slashes. Returns `null` for an empty text.
 */
export function matcher(text: string): ((name: string) => boolean) | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const pattern = /^\/(.+)\/$/.exec(trimmed);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], "i");
      return (name) => expression.test(name);
    } catch {
      // The pattern is not valid, perhaps because it is incomplete. Search for the text itself.
    }
  }
  const lower = trimmed.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

/** Returns, for each frame, whether it matches the search text. Returns `null` without a search text. */
export function matchingFrames(frames: string[], text: string): boolean[] | null {
  const matches = matcher(text);
  return matches && frames.map(matches);
}

/** Returns the weight of all stacks that contain a matching call. Each stack counts only once. */
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
