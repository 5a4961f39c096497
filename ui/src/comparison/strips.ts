// Rows of the strips of CPUs: for each CPU, the strip before and the strip after the change.

import type { CpuStrips } from "../api/types";

export interface StripRow {
  cpu: number;
  side: "before" | "after";
  /** Used share of each time bucket; empty if the CPU is missing on this side. */
  shares: number[];
}

/** Returns the rows of one trace of each side, sorted by CPU. */
export function rowsOf(before: CpuStrips, after: CpuStrips): StripRow[] {
  const sides = { before, after };
  const cpus = new Set([...before.cpus, ...after.cpus].map(({ cpu }) => cpu));
  return [...cpus]
    .sort((one, other) => one - other)
    .flatMap((cpu) =>
      (["before", "after"] as const).map((side) => ({
        cpu,
        side,
        shares: sides[side].cpus.find((strip) => strip.cpu === cpu)?.shares ?? [],
      })),
    );
}

/** Returns the mean of all buckets of all CPUs, on one side; `null` if this side has no CPUs. */
export function meanShare(rows: StripRow[], side: "before" | "after"): number | null {
  const shares = rows.filter((row) => row.side === side).flatMap((row) => row.shares);
  return shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length;
}
