// What a rectangle on a heat map chooses.

import { rangeOf } from "../canvas/axis";
import type { Chosen, HeatAnswer } from "./answer";

/** One corner: a stretch of time and a class of values. */
export interface Corner {
  from_ns: number;
  to_ns: number;
  row: number;
}

/** The times and values from one corner to the other, within what the answer holds. */
export function cellsChosen(answer: HeatAnswer, one: Corner, other: Corner): Chosen {
  const end = answer.start_ns + answer.bucket_ns * answer.buckets;
  const within = (time: number) => Math.min(Math.max(time, answer.start_ns), Math.min(end, answer.end_ns));
  const [low, high] = [Math.min(one.row, other.row), Math.max(one.row, other.row)];
  return {
    range: rangeOf(within(Math.min(one.from_ns, other.from_ns)), within(Math.max(one.to_ns, other.to_ns))),
    // A class is what is above its lower bound; values are whole numbers.
    from: answer.bounds[low] + 1,
    to: answer.bounds[high + 1] + 1,
  };
}
