// Conversion of the answer of a timeline to lines with a readable unit.

import type { Graph, Id, TableInfo, TimelineAnswer } from "../api/types";
import { valueColor } from "../colour";
import { duration } from "../format";
import { titled } from "../view/columns";

/** Line of a graph, or layer of a stacked graph. */
export interface Line {
  /** Id of the group; `"rest"` for all groups without their own line. */
  id: Id | "rest";
  label: string;
  color: string;
  values: (number | null)[];
  /** Total for the whole time range, in the unit of the answer. */
  total: number | null;
}

/** Lines of a timeline. */
export interface Lines {
  lines: Line[];
  /** Unit of the values. */
  unit: string;
  /** Description of the values for the vertical axis. */
  about: string;
  /** Unit of the totals. */
  totalUnit: string;
}

/** Tables whose rows take time of a CPU. The graph shows their time as a share of all CPUs. */
export const OF_CPUS = new Set(["cpu_runs", "interrupts", "samples"]);
/** Measures that are CPU times. */
const CPU_TIME = new Set(["time", "cpu_ns", "weight_ns", "exclusive_ns", "duration_ns"]);

/** Returns true if a graph draws CPU time, which is shown as a share of the CPUs. */
export function isShareOfCpus(table: string, graph: Graph): boolean {
  const sums = (graph.function ?? "sum") === "sum";
  return sums && OF_CPUS.has(table) && CPU_TIME.has(graph.measure ?? "rows");
}

/** Returns the length of a bucket in nanoseconds. The last bucket may be shorter. */
export function bucketLength(answer: TimelineAnswer, place: number): number {
  const start = answer.start_ns + place * answer.bucket_ns;
  return Math.max(Math.min(start + answer.bucket_ns, answer.end_ns) - start, 1);
}

/** Replaces unknown values by the last known value. Values before the first known value stay unknown. */
export function held(values: readonly (number | null)[]): (number | null)[] {
  let last: number | null = null;
  return values.map((value) => (last = value ?? last));
}

/** Returns the lines for an answer. `cpus` is the number of CPUs, or `null` if it is unknown. */
export function linesOf(
  answer: TimelineAnswer,
  table: TableInfo | undefined,
  graph: Graph,
  cpus: number | null,
): Lines {
  const measure = graph.measure ?? "rows";
  const sums = (graph.function ?? "sum") === "sum";
  const column = table?.columns.find(({ name }) => name === measure);
  const ofCpus = isShareOfCpus(table?.name ?? "", graph);
  const unit = answer.unit;
  let scale: ((value: number, place: number) => number) | null = null;
  let about = column ? titled(column) : measure;
  let shown = unit;
  if (ofCpus) {
    const among = graph.by === "cpu" && (graph.as ?? "stacked") !== "stacked" ? 1 : (cpus ?? 1);
    scale = (value, place) => value / (bucketLength(answer, place) * among);
    shown = "share";
    about = among > 1 ? `% of ${among} CPUs` : "% of a CPU";
  } else if (answer.spread) {
    scale = (value, place) => value / bucketLength(answer, place);
    shown = "";
    about = measure === "time" ? "number at once" : `${about}: number at once`;
  } else if (measure === "rows") {
    about = "rows";
  }
  // A sum depends on the length of the bucket, so the description contains the length.
  if (sums && scale === null) about = `${about} per ${duration(answer.bucket_ns)}`;
  if (graph.function && graph.function !== "sum") about = `${graph.function} of ${about}`;
  const scaled = (values: (number | null)[]) =>
    scale === null ? values : values.map((value, place) => (value === null ? null : scale(value, place)));
  // A state, such as a rank, holds until the next value is known.
  const isState = graph.as === "lines" && !sums && graph.function !== "count" && column?.numeric_key === true;
  if (isState) about = `${about}, until the next value`;
  const lines: Line[] = answer.series.map((series) => ({
    id: series.id,
    label: series.label,
    color: valueColor(graph.by ?? "", series.label),
    values: isState ? held(series.values) : scaled(series.values),
    total: series.total,
  }));
  // Series of numbers are sorted by value. Series of names are sorted by total.
  if (table?.columns.find(({ name }) => name === graph.by)?.numeric_key) {
    lines.sort((one, other) => Number(one.id ?? Infinity) - Number(other.id ?? Infinity));
  }
  // In a graph of lines, the sum of all other groups would be much higher than single lines, so this sum is omitted.
  if (answer.rest && graph.as !== "lines") {
    const { count, total, values } = answer.rest;
    const label = `${count} ${count === 1 ? "other" : "others"}`;
    lines.push({ id: "rest", label, color: "var(--other)", values: scaled(values), total: total ?? null });
  }
  return { lines, unit: shown, about, totalUnit: measure === "rows" ? "" : unit };
}
