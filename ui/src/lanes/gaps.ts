// When a trace does not hold what a CPU did.

import type { Range } from "../api/types";
import type { CpuLane } from "./answer";

/** The parts of a range that are not recorded of a CPU: those before its record, and those after. */
export function gapsOf({ recorded_from_ns, recorded_until_ns }: CpuLane, [from, to]: Range): Range[] {
  const gaps: Range[] = [];
  if (recorded_from_ns != null && recorded_from_ns > from) gaps.push([from, Math.min(recorded_from_ns, to)]);
  if (recorded_until_ns != null && recorded_until_ns < to) gaps.push([Math.max(recorded_until_ns, from), to]);
  return gaps;
}
