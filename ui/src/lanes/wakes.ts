// Which arrows from a wake to the run it led to are drawn.

import type { Range } from "../api/types";
import type { LanesAnswer, Wake } from "./answer";

/** More arrows than this say nothing. */
const FEW = 80;

/** The wakes to draw in a range: none if there are too many. */
export function wakesToDraw(answer: LanesAnswer, [from, to]: Range): { drawn: Wake[]; tooMany: boolean } {
  if (!answer.exact) return { drawn: [], tooMany: false };
  const seen = answer.wakes.filter((wake) => wake.run_start_ns >= from && wake.at_ns < to);
  return seen.length <= FEW ? { drawn: seen, tooMany: false } : { drawn: [], tooMany: true };
}
