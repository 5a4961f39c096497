// Time range and rows of a wait that is drawn as lanes.

import type { Range, Story } from "../api/types";
import { partsOf, type Part } from "./story";

/** Parts of a wait, and the time range in which they are drawn. */
export interface WaitPicture {
  parts: Part[];
  range: Range;
}

/** Longest drawn part of the run after the wait, as a share of the wait. */
const MAX_RUN_SHARE = 0.15;

/**
 * Returns the parts of a wait in their time range, with a margin on both sides. The run after the wait is cut, because
 * it can be much longer than the wait. Returns `null` if no part is known.
 */
export function waitPicture(story: Story): WaitPicture | null {
  const all = partsOf(story.story);
  const waits = all.filter(({ kind }) => kind !== "running");
  const [first] = waits;
  if (!first) return null;
  const from = first.from_ns;
  const to = waits[waits.length - 1].to_ns;
  const longest = Math.max((to - from) * MAX_RUN_SHARE, 1000);
  const parts = all.map((part) =>
    part.kind === "running" ? { ...part, to_ns: Math.min(part.to_ns, part.from_ns + longest) } : part,
  );
  const end = Math.max(...parts.map(({ to_ns }) => to_ns));
  const margin = Math.max(Math.round((end - from) * 0.03), 500);
  return { parts, range: [Math.max(Math.round(from - margin), 0), Math.round(end + margin)] };
}
