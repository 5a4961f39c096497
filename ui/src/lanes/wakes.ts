// Selection of the wakes to draw.

import type { LanesAnswer, Range, Wake } from "../api/types";

/** Maximum number of arrows. A graph with more arrows would be unreadable. */
const MAX_ARROWS = 80;

/** Returns the wakes in a time range for which arrows are drawn. If there are too many, returns none. */
export function wakesToDraw(answer: LanesAnswer, [from, to]: Range): { drawn: Wake[]; tooMany: boolean } {
  if (!answer.exact) return { drawn: [], tooMany: false };
  const visible = answer.wakes.filter((wake) => wake.run_start_ns >= from && wake.at_ns < to);
  return visible.length <= MAX_ARROWS ? { drawn: visible, tooMany: false } : { drawn: [], tooMany: true };
}
