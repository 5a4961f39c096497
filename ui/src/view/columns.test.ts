import { describe, expect, test } from "vitest";
import type { ColumnInfo, TableInfo, View } from "../api/types";
import {
  BAR,
  added,
  keysOf,
  moved,
  parts,
  pathFilter,
  plainView,
  regrouped,
  unitOf,
  valuesOf,
  without,
} from "./columns";

const column = (name: string, kind: ColumnInfo["kind"], unit = ""): ColumnInfo => ({
  name,
  title: name,
  about: "",
  kind,
  unit,
  numeric_key: false,
});
const table: TableInfo = {
  name: "cpu_runs",
  title: "CPU Usage (Precise)",
  about: "",
  rows: 1,
  recorded: true,
  last_ns: null,
  record: "",
  time: "end_ns",
  interval: { start: "start_ns", end: "end_ns" },
  columns: [
    column("process", "key"),
    column("thread_id", "key"),
    column("cpu", "key"),
    column("cpu_ns", "measure", "ns"),
    column("ready_ns", "measure", "ns"),
  ],
  stacks: [],
};
const columns = ["process", "thread_id", BAR, "rows", "cpu_ns:sum"];

describe("a column is moved", () => {
  test("across the bar, and no longer groups", () => {
    expect(moved(table, columns, 1, 3)).toEqual(["process", BAR, "thread_id", "rows", "cpu_ns:sum"]);
  });
  test("back across it, and groups again", () => {
    expect(moved(table, ["process", BAR, "thread_id", "rows"], 2, 0)).toEqual(["thread_id", "process", BAR, "rows"]);
  });
  test("to the other end of its side", () => {
    expect(moved(table, columns, 0, 2)).toEqual(["thread_id", "process", BAR, "rows", "cpu_ns:sum"]);
    expect(moved(table, columns, 3, 5)).toEqual(["process", "thread_id", BAR, "cpu_ns:sum", "rows"]);
  });
  test("but a measure cannot cross the bar", () => {
    expect(moved(table, columns, 4, 0)).toEqual(["process", "thread_id", BAR, "cpu_ns:sum", "rows"]);
  });
  test("and the bar moves across keys only", () => {
    expect(moved(table, columns, 2, 0)).toEqual([BAR, "process", "thread_id", "rows", "cpu_ns:sum"]);
    expect(moved(table, columns, 2, 5)).toEqual(columns);
    expect(moved(table, ["process", BAR, "cpu", "rows"], 1, 4)).toEqual(["process", "cpu", BAR, "rows"]);
  });
  test("nowhere if it does not exist", () => {
    expect(moved(table, columns, 9, 0)).toEqual(columns);
    expect(moved(table, columns, 0, -5)).toEqual(columns);
  });
});

test("columns left and right of the bar", () => {
  expect(keysOf(columns)).toEqual(["process", "thread_id"]);
  expect(valuesOf(columns)).toEqual(["rows", "cpu_ns:sum"]);
  expect(keysOf([BAR])).toEqual([]);
});

test("keys are added left of the bar, measures at the end, duplicates never", () => {
  expect(added(table, columns, "cpu")).toEqual(["process", "thread_id", "cpu", BAR, "rows", "cpu_ns:sum"]);
  expect(added(table, columns, "ready_ns:max")).toEqual([...columns, "ready_ns:max"]);
  expect(added(table, columns, "rows")).toEqual(columns);
});

test("the bar is never removed", () => {
  expect(without(columns, BAR)).toEqual(columns);
  expect(without(columns, "rows")).toEqual(["process", "thread_id", BAR, "cpu_ns:sum"]);
});

test("a graph coloured by the first key follows it", () => {
  const view: View = {
    table: "cpu_runs",
    columns,
    graph: { kind: "timeline", by: "process" },
    sort: { column: "rows", descending: true },
  };
  expect(regrouped(view, ["cpu", "process", BAR, "rows"]).graph.by).toBe("cpu");
  expect(regrouped({ ...view, graph: { kind: "timeline", by: "rank" } }, ["cpu", BAR]).graph.by).toBe("rank");
  expect(regrouped(view, ["process", BAR, "cpu_ns:sum"]).sort).toBeNull();
});

test("names and aggregates", () => {
  expect(parts("cpu_ns:p999")).toEqual({ name: "cpu_ns", aggregate: "p999" });
  expect(parts("module:weird")).toEqual({ name: "module:weird", aggregate: null });
  expect(unitOf(table, "cpu_ns:max")).toBe("ns");
  expect(unitOf(table, "cpu_ns:count")).toBe("");
  expect(pathFilter(["process", "cpu"], [3, null])).toEqual([
    { column: "process", in: [3] },
    { column: "cpu", in: [null] },
  ]);
});

test("the default view has the time in view if rows last", () => {
  expect(plainView(table)).toMatchObject({
    columns: ["process", BAR, "rows", "time:sum", "cpu_ns:sum", "ready_ns:sum"],
    graph: { measure: "time", by: "process" },
  });
  expect(plainView({ ...table, interval: null })).toMatchObject({
    columns: ["process", BAR, "rows", "cpu_ns:sum", "ready_ns:sum"],
    graph: { measure: "cpu_ns" },
  });
});
