import { describe, expect, test } from "vitest";
import type { ColumnInfo, TableInfo, View } from "../api/types";
import {
  BAR,
  added,
  heading,
  keysOf,
  moved,
  parts,
  pathFilter,
  plainView,
  regrouped,
  rowColumns,
  stackLast,
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

test("columns with equal titles have their names in the headers", () => {
  const flags = { ...table, columns: [column("in_dpc", "key"), column("in_isr", "key")] };
  for (const flag of flags.columns) flag.title = "DPC/ISR";
  expect(heading(flags, "in_dpc").title).toBe("DPC/ISR [in_dpc]");
  expect(heading(flags, "in_isr").title).not.toBe(heading(flags, "in_dpc").title);
  expect(heading(table, "cpu").title).toBe("cpu");
});

test("a table opens as its built-in view", () => {
  const view: View = { table: "cpu_runs", columns: ["process", BAR, "rows"], graph: { kind: "timeline" } };
  const presets = [
    { name: "Stacks", group: "CPU", view: { ...view, graph: { kind: "flame" as const } } },
    { name: "Use", group: "CPU", view: { ...view, filter: [{ column: "thread_id", not_in: [0] }] } },
  ];
  expect(plainView(table, presets)).toEqual({ ...presets[1].view, range: null });
  expect(plainView({ ...table, name: "other" }, presets).columns[0]).toBe("process");
});

test("single rows have the columns that Windows Performance Analyzer shows", () => {
  const names = ["process", "thread", "start_ns", "end_ns", "ready_ns", "rank_out", "priority", "cpu_ns", "cpu"];
  const full = { ...table, columns: names.map((name) => column(name, "measure")) };
  const view: View = { table: "cpu_runs", columns: ["thread", BAR, "rows", "cpu_ns:sum"], graph: { kind: "none" } };
  const shown = rowColumns(full, view);
  expect(shown.slice(0, 3)).toEqual([BAR, "start_ns", "process"]);
  expect(shown).toEqual(expect.arrayContaining(["ready_ns", "rank_out", "priority"]));
  expect(shown).not.toContain("rows");
  const other = rowColumns({ ...full, name: "disk_io", time: "end_ns" }, view);
  expect(other.slice(0, 4)).toEqual([BAR, "end_ns", "start_ns", "thread"]);
});

test("a stack is the last column of groups, and there is only one", () => {
  const stacks = { ...table, stacks: ["stack_id", "readying_stack_id"] };
  expect(stackLast(stacks, ["stack_id", "process", BAR, "rows"])).toEqual(["process", "stack_id", BAR, "rows"]);
  expect(stackLast(stacks, ["process", "stack_id", "readying_stack_id", BAR], ["process", "stack_id", BAR])).toEqual([
    "process",
    "readying_stack_id",
    BAR,
  ]);
  expect(stackLast(stacks, ["process", BAR, "stack_id", "rows"])).toEqual(["process", BAR, "rows"]);
  expect(heading({ ...stacks, name: "cpu_runs" }, "readying_stack_id").title).toBe("Ready Thread Stack");
});
