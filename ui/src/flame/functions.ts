// Functions of two sides in one table.

import type { ButterflyAnswer } from "../api/types";

/** Function with its weights on this side, and its total on the base side. */
export interface ComparedFunction {
  label: string;
  total: number;
  self: number;
  /** Total on the base side. `null` without a base, or if the base's list of functions may lack this function. */
  base: number | null;
  /** Share of the total on this side minus the share on the base side; `null` if it is unknown. */
  change: number | null;
}

/**
 * Joins the functions of this side with the functions of a base side. Functions that only one side has are included.
 */
export function joinedFunctions(mine: ButterflyAnswer | null, base: ButterflyAnswer | null): ComparedFunction[] {
  const functions = mine?.functions ?? [];
  if (!mine || !base?.functions) return functions.map((one) => ({ ...one, base: null, change: null }));
  // If the list of a side is complete, functions that are not in the list have a total of 0.
  const totalsOf = (answer: ButterflyAnswer) => {
    const known = new Map(answer.functions!.map(({ label, total }) => [label, total]));
    const missing = known.size < answer.functions_total ? null : 0;
    return (label: string) => known.get(label) ?? missing;
  };
  const [here, there] = [totalsOf(mine), totalsOf(base)];
  const listed = new Set(functions.map(({ label }) => label));
  const others = base.functions.filter(({ label }) => !listed.has(label) && here(label) === 0);
  const all = [...functions, ...others.map(({ label }) => ({ label, total: 0, self: 0 }))];
  const share = (weight: number, total: number) => (total > 0 ? weight / total : 0);
  return all.map((one) => {
    const other = there(one.label);
    const change = other === null ? null : share(one.total, mine.total) - share(other, base.total);
    return { ...one, base: other, change };
  });
}
