// Groups of several traces in one table, by their labels.

import type { PivotAnswer } from "../api/types";

/** Group with its value in each trace. */
export interface JoinedRow {
  label: string;
  /** Value of each trace; `null` if it is unknown. A sum is 0 if the trace has no such group. */
  values: (number | null)[];
  /** Value of each trace minus the value of the first trace. */
  differences: (number | null)[];
  /** Value of each trace divided by the value of the first trace. */
  ratios: (number | null)[];
}

/**
 * Joins the groups of traces by their labels. The value of a group is its aggregate with the index `aggregate`. If the
 * aggregate is a sum (`isSum`) and the answer of a trace has all groups, groups that this trace lacks have the value 0.
 */
export function joinedRows(answers: readonly PivotAnswer[], aggregate: number, isSum: boolean): JoinedRow[] {
  const labels = new Set(answers.flatMap(({ groups }) => groups.map(({ label }) => label)));
  const known = answers.map(({ groups }) => new Map(groups.map(({ label, values }) => [label, values[aggregate]])));
  return [...labels].map((label) => {
    const values = known.map((of, trace) => {
      const value = of.get(label);
      if (typeof value === "number") return value;
      const isComplete = answers[trace].groups.length >= answers[trace].groups_total;
      return isSum && !of.has(label) && isComplete ? 0 : null;
    });
    return { label, values, ...comparedWithFirst(values) };
  });
}

/** Returns the differences and ratios between each value and the first value. */
export function comparedWithFirst(values: readonly (number | null)[]): Pick<JoinedRow, "differences" | "ratios"> {
  const [base] = values;
  return {
    differences: values.map((value) => (value === null || base === null ? null : value - base)),
    ratios: values.map((value) => (value === null || base === null || base === 0 ? null : value / base)),
  };
}

/** Sorts rows by their largest absolute difference between a trace and the first trace, the largest first. */
export function byDifference(rows: readonly JoinedRow[]): JoinedRow[] {
  const size = ({ differences }: JoinedRow) => Math.max(...differences.map((one) => Math.abs(one ?? 0)));
  return rows.toSorted((one, other) => size(other) - size(one));
}
