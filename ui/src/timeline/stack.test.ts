import { expect, test } from "vitest";
import type { TableInfo, TimelineAnswer } from "../api/types";
import { linesOf } from "./lines";
import { bucketAt, highest, stacked } from "./stack";

test("layers add to those below; unknown values stay unknown", () => {
  expect(
    stacked([
      [1, null, null],
      [2, 5, null],
      [4, null, null],
    ]),
  ).toEqual([
    [1, null, null],
    [3, 5, null],
    [7, 5, null],
  ]);
  expect(stacked([])).toEqual([]);
});

test("the maximum, and the bucket of a time", () => {
  expect(
    highest([
      [1, null],
      [7, 3],
    ]),
  ).toBe(7);
  expect(highest([])).toBe(0);
  expect(bucketAt(100, 10, 3, 119)).toBe(1);
  expect(bucketAt(100, 10, 3, 130)).toBeNull();
  expect(bucketAt(100, 10, 3, 99)).toBeNull();
});

const answer: TimelineAnswer = {
  start_ns: 0,
  end_ns: 25,
  bucket_ns: 10,
  buckets: 3,
  series: [{ id: 1, label: "a.exe (4)", total: 30, values: [10, 20, 5] }],
  rest: { count: 2, total: 4, values: [4, 0, 0] },
  unit: "ns",
  spread: true,
  sql: "",
};
const cpuRuns = { name: "cpu_runs", columns: [] as TableInfo["columns"] } as TableInfo;

test("CPU time is a share of all CPUs; the last bucket is shorter", () => {
  const { lines, unit, totalUnit } = linesOf(answer, cpuRuns, { kind: "timeline", measure: "time", by: "process" }, 2);
  expect(lines[0].values).toEqual([0.5, 1, 0.5]);
  expect(lines[1]).toMatchObject({ id: "rest", label: "2 others", values: [0.2, 0, 0] });
  expect([unit, totalUnit]).toEqual(["share", "ns"]);
});

test("with a line per CPU it is a share of one CPU", () => {
  const graph = { kind: "timeline", measure: "time", by: "cpu", as: "lines" } as const;
  expect(linesOf(answer, cpuRuns, graph, 2).lines[0].values).toEqual([1, 2, 1]);
});

test("other times become a number at once, other measures are unchanged", () => {
  expect(
    linesOf(answer, { ...cpuRuns, name: "disk_io" }, { kind: "timeline", measure: "time" }, 2).lines[0].values,
  ).toEqual([1, 2, 1]);
  const ready = linesOf(answer, cpuRuns, { kind: "timeline", measure: "ready_ns" }, 2);
  expect(ready.lines[0].values).toEqual([1, 2, 1]);
  expect(ready.about).toBe("ready_ns: number at once");
  const queued = linesOf({ ...answer, spread: false }, cpuRuns, { kind: "timeline", measure: "queue_ns" }, 2);
  expect(queued.lines[0].values).toEqual([10, 20, 5]);
  expect(queued.about).toBe("queue_ns per 10 ns");
});

test("a series keeps its colour if the order changes", () => {
  const [series] = answer.series;
  const other = { ...series, id: 2, label: "a.exe (8)" };
  const colours = (...series: TimelineAnswer["series"]) => {
    const { lines } = linesOf(
      { ...answer, rest: null, series },
      cpuRuns,
      { kind: "timeline", measure: "time", by: "process" },
      2,
    );
    return new Map(lines.map(({ id, color }) => [id, color]));
  };
  const before = colours(series, other);
  expect(before.get(1)).not.toBe(before.get(2));
  expect(colours(other, series)).toEqual(new Map([...before].reverse()));
});
