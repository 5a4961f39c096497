// Chart of a query's result. The first column is the axis, and the other columns of numbers are the series.

import type { SqlAnswer } from "../api/types";
import { isMoment, isNumeric, plain, unitOf } from "./cells";

export interface ChartSeries {
  name: string;
  unit: string;
  values: (number | null)[];
}

/** Line chart over numbers or times, bar chart over keys, or the reason why there is no chart. */
export type Chart =
  | { kind: "lines"; axis: string; unit: string; x: number[]; series: ChartSeries[] }
  | { kind: "bars"; axis: string; keys: string[]; left: number; series: ChartSeries[] }
  | { kind: "none"; why: string };

/** Maximum number of bars, and maximum number of lines. */
const [MAX_BARS, MAX_LINES] = [100, 12];

/** Returns the chart of a result. */
export function chartOf({ columns, rows }: SqlAnswer): Chart {
  if (rows.length === 0) return { kind: "none", why: "The result has no rows." };
  if (columns.length < 2) return { kind: "none", why: "A chart needs two columns: keys or times, then numbers." };
  const numeric = columns.map((column, place) => ({ column, place })).slice(1);
  const shown = numeric.filter(({ column }) => isNumeric(column)).slice(0, MAX_LINES);
  if (shown.length === 0) return { kind: "none", why: "No column after the first has numbers." };
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
    // If no number occurs twice, the numbers are the axis of a line chart. Otherwise, they are the keys of a bar chart.
    const isAxis = x.length > 1 && x.every((value, place) => place === 0 || value > x[place - 1]);
    if (isAxis) {
      return {
        kind: "lines",
        axis: axis.name,
        unit: isMoment(axis) ? "moment" : unitOf(axis),
        x,
        series: series(sorted),
      };
    }
  }
  const first = rows.slice(0, MAX_BARS);
  const keys = first.map((row) => (row[0] === null ? "unknown" : plain(row[0])));
  return { kind: "bars", axis: axis.name, keys, left: rows.length - first.length, series: series(first) };
}

/** Returns the number in a cell. The server sends very large numbers as text. */
function number(cell: unknown): number | null {
  if (typeof cell === "number") return cell;
  if (typeof cell !== "string" || cell.trim() === "") return null;
  const value = Number(cell);
  return Number.isFinite(value) ? value : null;
}

/**
 * Returns the longest step between two rows that a line connects. If nearly all steps are equal, as with
 * time buckets, rows are missing in a longer step. If steps are irregular, lines connect all rows.
 */
export function longestStep(x: readonly number[]): number {
  const steps = x.slice(1).map((value, place) => value - x[place]);
  const usual = steps.toSorted((one, other) => one - other)[Math.floor(steps.length / 2)] ?? 0;
  const same = steps.filter((step) => Math.abs(step - usual) <= usual * 0.01).length;
  return steps.length >= 4 && same >= 0.7 * steps.length ? usual * 1.5 : Infinity;
}

/**
 * Returns, for each series, whether it is shown initially. Only series with the unit of the first series are
 * shown.
 */
export function initiallyShown(series: ChartSeries[]): boolean[] {
  return series.map(({ unit }) => unit === series[0].unit);
}

/** Returns the range of the visible values. It always includes 0. */
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

/** Returns values within the range. Their distance is 1, 2 or 5 × 10ⁿ. */
export function valueSteps([low, high]: [number, number], count: number): number[] {
  const least = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least * 0.999)!;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}
