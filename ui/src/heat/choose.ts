// Selection of a rectangle on a heat map.

import { rangeOf } from "../canvas/axis";
import type { HeatAnswer } from "../api/types";
import type { Chosen } from "./chosen";

/** Corner of the rectangle, which covers a time range and a class of values. */
export interface Corner {
  from_ns: number;
  to_ns: number;
  row: number;
}

/** Returns the times and values between two corners, limited to the range of the answer. */
export function cellsChosen(answer: HeatAnswer, one: Corner, other: Corner): Chosen {
  const end = answer.start_ns + answer.bucket_ns * answer.buckets;
  const within = (time: number) => Math.min(Math.max(time, answer.start_ns), Math.min(end, answer.end_ns));
  const [low, high] = [Math.min(one.row, other.row), Math.max(one.row, other.row)];
  return {
    range: rangeOf(within(Math.min(one.from_ns, other.from_ns)), within(Math.max(one.to_ns, other.to_ns))),
    // Values are integers. A class contains the values above its lower bound, up to and including its upper
    // bound.
    from: answer.bounds[low] + 1,
    to: answer.bounds[high + 1] + 1,
  };
}
