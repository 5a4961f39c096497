// Who had how much of the lanes: their legend.

import type { Range } from "../api/types";
import { valueColor, paletteColor } from "../colour";
import { label, type LanesAnswer } from "./answer";
import { kindOf } from "./hit";

/** A colour of the lanes, and how long it was there: not known where columns stand for several runs. */
export interface Share {
  label: string;
  color: string;
  ns: number | null;
}

/** Processes and kinds of interrupts by their time within a range, the longest first. */
export function shares({ cpus, labels, exact, interrupts_exact }: LanesAnswer, [from, to]: Range): { processes: Share[]; kinds: Share[] } {
  const processes = new Map<string, number>();
  const kinds = new Map<string, number>();
  for (const { runs, interrupts } of cpus) {
    const add = (sums: Map<string, number>, name: string, { start, end, busy }: { start: number[]; end: number[]; busy: number[] }, place: number) => {
      const ns = Math.max(Math.min(end[place]!, to) - Math.max(start[place]!, from), 0) * busy[place]!;
      if (ns > 0) sums.set(name, (sums.get(name) ?? 0) + ns);
    };
    runs.process.forEach((process, place) => add(processes, label(labels.process, process), runs, place));
    interrupts.kind.forEach((kind, place) => add(kinds, kind, interrupts, place));
  }
  const sorted = (sums: Map<string, number>, exact: boolean, share: (name: string) => Omit<Share, "ns">) =>
    [...sums].sort(([, one], [, other]) => other - one).map(([name, ns]) => ({ ...share(name), ns: exact ? ns : null }));
  return {
    processes: sorted(processes, exact, (name) => ({ label: name, color: name === "unknown" ? "var(--unknown)" : valueColor("process", name) })),
    kinds: sorted(kinds, interrupts_exact, (name) => ({ label: kindOf(name), color: paletteColor(name) })),
  };
}
