import { expect, test } from "vitest";
import type { TableInfo } from "../api/types";
import { columnCells, tableText } from "./table_text";
import type { Row } from "./tree";

const table = {
  columns: [
    { name: "process", title: "Process", kind: "key", unit: "", about: "" },
    { name: "cpu", title: "CPU", kind: "key", unit: "", about: "", numeric_key: true },
    { name: "cpu_ns", title: "CPU Usage", kind: "measure", unit: "ns", about: "" },
  ],
} as unknown as TableInfo;
const columns = ["process", "cpu", "|", "cpu_ns:sum"];
const row = (path: number[], label: string, ns: number): Row => ({
  path,
  group: { id: path[path.length - 1], label, rows: 1, values: [ns], leaf: path.length === 2 },
  opens: path.length < 2,
  open: path.length < 2,
  place: 0,
  siblings: 1,
});
const rows = [row([7], "a.exe (4)", 2_000), row([7, 0], "0", 2_000)];

test("copied rows contain the labels of their path", () => {
  expect(tableText(table, columns, rows, "csv")).toBe(
    'Process,CPU,"CPU Usage (sum, ns)"\r\na.exe (4),,2000\r\na.exe (4),0,2000\r\n',
  );
  expect(tableText(table, columns, rows, "markdown").split("\n")[2]).toBe("| a.exe (4) |  | 2 µs |");
});

test("a copied key has only the rows of its level", () => {
  expect(columnCells(columns, "process", rows)).toEqual(["a.exe (4)"]);
  expect(columnCells(columns, "cpu", rows)).toEqual(["0"]);
  expect(columnCells(columns, "cpu_ns:sum", rows)).toEqual(["2000", "2000"]);
});
