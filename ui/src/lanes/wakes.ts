// Which arrows from a wake to the run it led to are drawn.

import type { Range } from "../api/types";
import type { LanesAnswer, Wake } from "./answer";

/** More arrows than this say nothing. */
const FEW = 80;

/** The wakes to draw in a range: none if there are too many, and then how many there are. */
export function wakesToDraw(answer: LanesAnswer, [from, to]: Range): { drawn: Wake[]; tooMany: number } {
  if (!answer.exact) return { drawn: [], tooMany: 0 };
  const seen = answer.wakes.filter((wake) => wake.run_start_ns >= from && wake.at_ns < to);
  return seen.length <= FEW ? { drawn: seen, tooMany: 0 } : { drawn: [], tooMany: seen.length };
}
