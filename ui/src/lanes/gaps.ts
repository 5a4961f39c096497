// Times at which the trace has no data about a CPU.

import type { CpuLane, Range } from "../api/types";

/**
 * Returns the parts of a time range without data: before the CPU's first event, after its last event, and
 * doubtful runs.
 */
export function gapsOf({ recorded_from_ns, recorded_until_ns, doubtful }: CpuLane, [from, to]: Range): Range[] {
  const gaps: Range[] = [];
  if (recorded_from_ns !== null && recorded_from_ns > from) gaps.push([from, Math.min(recorded_from_ns, to)]);
  if (recorded_until_ns !== null && recorded_until_ns < to) gaps.push([Math.max(recorded_until_ns, from), to]);
  doubtful.start.forEach((start, place) => {
    const end = doubtful.end[place];
    if (start < to && end > from) gaps.push([Math.max(start, from), Math.min(end, to)]);
  });
  return gaps;
}
