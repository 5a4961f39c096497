// A result as a chart: the first column is its axis, numbers are its series.

import { isMoment, isNumeric, plain, unitOf, type SqlAnswer } from "./answer";

export interface ChartSeries {
  name: string;
  unit: string;
  values: (number | null)[];
}

/** Lines over numbers or times, bars over keys, or why there is no chart. */
export type Chart =
  | { kind: "lines"; axis: string; unit: "moment" | string; x: number[]; series: ChartSeries[] }
  | { kind: "bars"; axis: string; keys: string[]; left: number; series: ChartSeries[] }
  | { kind: "none"; why: string };

/** More bars are not looked at, nor are more lines. */
const [BARS, LINES] = [100, 12];

export function chartOf({ columns, rows }: SqlAnswer): Chart {
  if (rows.length === 0) return { kind: "none", why: "There are no rows." };
  if (columns.length < 2) return { kind: "none", why: "A chart needs two columns: keys or times, then numbers." };
  const numeric = columns.map((column, place) => ({ column, place })).slice(1);
  const shown = numeric.filter(({ column }) => isNumeric(column)).slice(0, LINES);
  if (shown.length === 0) return { kind: "none", why: "Of the columns after the first none holds numbers." };
  const series = (rows: SqlAnswer["rows"]): ChartSeries[] =>
    shown.map(({ column, place }) => ({
      name: column.name,
      unit: isMoment(column) ? "moment" : unitOf(column),
      values: rows.map((row) => number(row[place])),
    }));
  const [axis] = columns;
  if (isNumeric(axis)) {
    const sorted = rows.filter((row) => number(row[0]) !== null);
    sorted.sort((one, other) => Number(one[0]) - Number(other[0]));
    const x = sorted.map((row) => Number(row[0]));
    // Numbers of which each comes once are an axis; else they are keys like any other.
    const isAxis = x.length > 1 && x.every((value, place) => place === 0 || value > x[place - 1]);
    if (isAxis) {
      return { kind: "lines", axis: axis.name, unit: isMoment(axis) ? "moment" : unitOf(axis), x, series: series(sorted) };
    }
  }
  const first = rows.slice(0, BARS);
  const keys = first.map((row) => (row[0] === null ? "unknown" : plain(row[0])));
  return { kind: "bars", axis: axis.name, keys, left: rows.length - first.length, series: series(first) };
}

/** Numbers that do not fit are sent as text. */
function number(cell: unknown): number | null {
  if (typeof cell === "number") return cell;
  if (typeof cell !== "string" || cell.trim() === "") return null;
  const value = Number(cell);
  return Number.isFinite(value) ? value : null;
}

/**
 * The longest step from row to row over which a line is drawn. Where nearly all steps are the same, as of
 * slices of time, a longer one leaves rows out: nothing is known there. Rows at any other times are joined.
 */
export function longestStep(x: readonly number[]): number {
  const steps = x.slice(1).map((value, place) => value - x[place]!);
  const usual = steps.toSorted((one, other) => one - other)[Math.floor(steps.length / 2)] ?? 0;
  const same = steps.filter((step) => Math.abs(step - usual) <= usual * 0.01).length;
  return steps.length >= 4 && same >= 0.7 * steps.length ? usual * 1.5 : Infinity;
}

/** Which series are shown at first: those of the same unit as the first. */
export function firstShown(series: ChartSeries[]): boolean[] {
  return series.map(({ unit }) => unit === series[0].unit);
}

/** From 0, or the least if that is below, to the most, of what is shown. */
export function extent(series: ChartSeries[], shown: boolean[]): [low: number, high: number] {
  let [low, high] = [0, 0];
  series.forEach(({ values }, place) => {
    if (!shown[place]) return;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  });
  return low === high ? [low, low + 1] : [low, high];
}

/** Values at steps of 1, 2 or 5 × 10ⁿ. */
export function valueSteps([low, high]: [number, number], count: number): number[] {
  const least = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least * 0.999)!;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}
