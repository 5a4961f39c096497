// A timeline's answer as lines to draw, in the unit that people read.

import type { Graph, Id, Table, Timeline } from "../api/types";
import { valueColor } from "../colour";
import { duration } from "../format";
import { titled } from "../view/columns";

/** One line, or one layer of a stack. */
export interface Line {
  /** The id of its group; of what has no line of its own, `"rest"`. */
  id: Id | "rest";
  label: string;
  color: string;
  values: (number | null)[];
  /** Of the whole range, in the answer's own unit. */
  total: number | null;
}

export interface Lines {
  lines: Line[];
  /** Unit of the values. */
  unit: string;
  /** What the values are, for the axis. */
  told: string;
  /** Unit of the totals. */
  totalUnit: string;
}

/** Tables whose rows keep a processor: their time is a share of the processors'. */
export const OF_CPUS = new Set(["cpu_runs", "interrupts", "samples"]);
/** Measures that are such time. */
const CPU_TIME = new Set(["time", "cpu_ns", "weight_ns", "exclusive_ns", "duration_ns"]);

/** How long a bucket is; the last may be shorter. */
export function bucketLength(answer: Timeline, place: number): number {
  const start = answer.start_ns + place * answer.bucket_ns;
  return Math.max(Math.min(start + answer.bucket_ns, answer.end_ns) - start, 1);
}

/** What is drawn of an answer. `cpus` is how many there are, if that is known. */
export function linesOf(answer: Timeline, table: Table | undefined, graph: Graph, cpus: number | null): Lines {
  const measure = graph.measure ?? "rows";
  const sums = (graph.function ?? "sum") === "sum";
  const column = table?.columns.find(({ name }) => name === measure);
  const ofCpus = sums && OF_CPUS.has(table?.name ?? "") && CPU_TIME.has(measure);
  const unit = answer.unit;
  let scale: ((value: number, place: number) => number) | null = null;
  let told = column ? titled(column) : measure;
  let shown = unit;
  if (ofCpus) {
    const among = graph.by === "cpu" && graph.as === "lines" ? 1 : (cpus ?? 1);
    scale = (value, place) => value / (bucketLength(answer, place) * among);
    shown = "share";
    told = among > 1 ? `% of ${among} CPUs` : "% of a CPU";
  } else if (answer.spread) {
    scale = (value, place) => value / bucketLength(answer, place);
    shown = "";
    told = measure === "time" ? "at once" : `${told}: how many at once`;
  } else if (measure === "rows") {
    told = "rows";
  }
  // A sum of stretches of another length is another sum.
  if (sums && scale === null) told = `${told} per ${duration(answer.bucket_ns)}`;
  if (graph.function && graph.function !== "sum") told = `${graph.function} of ${told}`;
  const scaled = (values: (number | null)[]) =>
    scale === null ? values : values.map((value, place) => (value === null ? null : scale(value, place)));
  const lines: Line[] = answer.series.map((series) => ({
    id: series.id,
    label: series.label,
    color: valueColor(graph.by ?? "", series.label),
    values: scaled(series.values),
    total: series.total,
  }));
  // Numbers are in their order, names by how much they have.
  if (table?.columns.find(({ name }) => name === graph.by)?.numeric_key) {
    lines.sort((one, other) => Number(one.id ?? Infinity) - Number(other.id ?? Infinity));
  }
  // A line of all others together would dwarf the lines of one each.
  if (answer.rest && graph.as !== "lines") {
    const { count, total, values } = answer.rest;
    const label = `${count} ${count === 1 ? "other" : "others"}`;
    lines.push({ id: "rest", label, color: "var(--other)", values: scaled(values), total: total ?? null });
  }
  return { lines, unit: shown, told, totalUnit: measure === "rows" ? "" : unit };
}
