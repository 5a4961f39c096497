import { expect, test } from "vitest";
import type { JsonColumn } from "../api/types";
import { shown, timesOf, unitOf } from "./cells";
import { readQueries, withRun, withSaved } from "./history";

const column = (name: string, unit = "", type = "Int64"): JsonColumn => ({ name, type, unit });

test("numbers have the units of their columns", () => {
  expect(shown(column("start_ns", "ns"), 30_333_000_000)).toBe("30.333000 s");
  expect(shown(column("total_ns"), 5_000_000_000)).toBe("5 s");
  expect(shown(column("size_bytes"), 2048)).toBe("2 KiB");
  expect(shown(column("n"), 5_000_000)).toBe("5000000");
  // Very large numbers are sent as text.
  expect(shown(column("wait_ns"), "1500000000")).toBe("1.5 s");
  expect(shown(column("name", "", "Utf8"), "5")).toBe("5");
  expect(unitOf(column("ns"))).toBe("");
});

test("a time leads to the range of its row, or to its moment", () => {
  const columns = [column("start_ns"), column("end_ns"), column("time_ns"), column("cpu_ns")];
  expect(timesOf(columns, [10, 30, 50, 20], 0)).toEqual([10, 30]);
  expect(timesOf(columns, [10, 30, 50, 20], 1)).toEqual([10, 30]);
  expect(timesOf(columns, [10, 30, 50, 20], 2)).toEqual([50, 50]);
  expect(timesOf(columns, [10, 30, 50, 20], 3)).toBeNull();
  expect(timesOf(columns, [null, 30, 50, 20], 0)).toBeNull();
});

test("queries are kept once, the latest first", () => {
  let queries = readQueries(null);
  for (const query of ["SELECT 1", "SELECT 2", "SELECT 1", "  "]) queries = withRun(queries, query);
  expect(queries.history).toEqual(["SELECT 1", "SELECT 2"]);
  queries = withSaved(withSaved(queries, { name: "b", query: "SELECT 1" }), { name: "b", query: "SELECT 3" });
  expect(queries.saved).toEqual([{ name: "b", query: "SELECT 3" }]);
  expect(readQueries(JSON.parse(JSON.stringify(queries)))).toEqual(queries);
});

test("damaged queries are ignored", () => {
  expect(readQueries({ history: ["SELECT 1", 7, null], saved: [{ name: "a" }, 3, { name: "b", query: "x" }] })).toEqual(
    {
      history: ["SELECT 1"],
      saved: [{ name: "b", query: "x" }],
    },
  );
});
