// Legend of the lanes: processes and kinds of interrupts, with the times that they ran.

import type { LanesAnswer, Range } from "../api/types";
import { valueColor, paletteColor } from "../colour";
import { label } from "./label";
import { kindOf } from "./hit";

/**
 * Entry of the legend. `ns` is the time in nanoseconds; `null` if columns represent several runs, so that it
 * is unknown.
 */
export interface Share {
  label: string;
  color: string;
  ns: number | null;
}

/** Returns the processes and the kinds of interrupts in a time range, sorted by descending time. */
export function shares(
  { cpus, labels, exact, interrupts_exact }: LanesAnswer,
  [from, to]: Range,
): { processes: Share[]; kinds: Share[] } {
  const processes = new Map<string, number>();
  const kinds = new Map<string, number>();
  for (const { runs, interrupts } of cpus) {
    const add = (
      sums: Map<string, number>,
      name: string,
      { start, end, busy }: { start: number[]; end: number[]; busy: number[] },
      place: number,
    ) => {
      const ns = Math.max(Math.min(end[place], to) - Math.max(start[place], from), 0) * busy[place];
      if (ns > 0) sums.set(name, (sums.get(name) ?? 0) + ns);
    };
    runs.process.forEach((process, place) => add(processes, label(labels.process, process), runs, place));
    interrupts.kind.forEach((kind, place) => add(kinds, kind, interrupts, place));
  }
  const sorted = (sums: Map<string, number>, exact: boolean, share: (name: string) => Omit<Share, "ns">) =>
    [...sums]
      .sort(([, one], [, other]) => other - one)
      .map(([name, ns]) => ({ ...share(name), ns: exact ? ns : null }));
  return {
    processes: sorted(processes, exact, (name) => ({
      label: name,
      color: name === "unknown" ? "var(--unknown)" : valueColor("process", name),
    })),
    kinds: sorted(kinds, interrupts_exact, (name) => ({ label: kindOf(name), color: paletteColor(name) })),
  };
}
