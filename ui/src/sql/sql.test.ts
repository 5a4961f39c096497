import { describe, expect, test } from "vitest";
import type { Catalogue, SqlAnswer } from "./answer";
import { chartOf, extent, firstShown, longestStep, valueSteps } from "./chart";
import { complete } from "./completion";
import { errorPlace } from "./error_place";
import { sourcesOf } from "./statement";
import { tokens } from "./tokens";
import { windowOf } from "./window";

const column = (name: string) => ({ name, type: "Int64", about: null });
const catalogue: Catalogue = {
  tables: [
    { name: "cpu_runs", about: null, view: false, columns: ["cpu", "start_ns", "ready_ns", "process_row"].map(column) },
    { name: "processes", about: null, view: false, columns: ["process_row", "image_name"].map(column) },
  ],
  functions: [{ name: "process", signature: "process(process_row)", about: null }],
};

/** What could be written at `|`. */
function choices(sql: string, asked = false): string[] {
  const caret = sql.indexOf("|");
  return complete(catalogue, sql.replace("|", ""), caret, asked)?.choices.map(({ name }) => name) ?? [];
}

describe("pieces of SQL", () => {
  test("are the text, with nothing left out", () => {
    for (const sql of ["SELECT 'it''s' -- why?\nFROM \"a\"\"b\" /* x", "a.b>=1.5e-3", "'open", "é😀 \u0000", ""]) {
      expect(tokens(sql).map(({ text }) => text).join("")).toBe(sql);
    }
  });
  test("have their kinds", () => {
    const kinds = tokens("select x, 'a;' FROM t -- c").filter(({ kind }) => kind !== "space");
    expect(kinds.map(({ kind }) => kind)).toEqual(["keyword", "name", "sign", "text", "keyword", "name", "comment"]);
  });
});

test("a statement's sources are its tables with their aliases", () => {
  const sql = 'WITH q AS (SELECT 1) SELECT * FROM cpu_runs AS r, "Odd ""T""" o JOIN processes USING (process_row) WHERE x IN (1, y)';
  expect(sourcesOf(tokens(sql))).toEqual([
    { name: "q", table: null },
    { name: "r", table: "cpu_runs" },
    { name: "o", table: 'Odd "T"' },
    { name: "processes", table: "processes" },
  ]);
});

describe("completion", () => {
  test("offers tables where a table is read", () => {
    expect(choices("SELECT * FROM |", true)).toEqual(["cpu_runs", "processes"]);
    expect(choices("SELECT * FROM cpu_runs r, pr|")).toEqual(["processes"]);
    expect(choices("SELECT * FROM cpu_runs JOIN p|")).toEqual(["processes", "cpu_runs"]);
    expect(choices("WITH mine AS (SELECT 1) SELECT * FROM mi|")).toEqual(["mine"]);
  });
  test("offers columns of what the statement reads, wherever it stands", () => {
    expect(choices("SELECT sta| FROM cpu_runs")).toEqual(["start_ns"]);
    expect(choices("SELECT * FROM cpu_runs WHERE read|")).toEqual(["ready_ns"]);
    expect(choices("SELECT r.| FROM cpu_runs r")).toEqual(["cpu", "start_ns", "ready_ns", "process_row"]);
    expect(choices("SELECT R.ready| FROM cpu_runs r")).toEqual(["ready_ns"]);
    expect(choices("SELECT ima| FROM processes; SELECT 1 FROM cpu_runs")).toEqual(["image_name"]);
    expect(choices("SELECT 1 FROM processes; SELECT ima| FROM cpu_runs")).toEqual([]);
  });
  test("offers columns before functions, and beginnings before other parts", () => {
    expect(choices("SELECT proc| FROM cpu_runs")).toEqual(["process_row", "process", "processes"]);
    expect(choices("SELECT row| FROM cpu_runs")).toEqual(["ROW", "ROWS", "process_row"]);
  });
  test("is quiet in texts and comments, and where nothing is typed", () => {
    for (const sql of ["SELECT 'pro|'", "SELECT 1 -- pro|", "SELECT /* pro|", 'SELECT "pro|', "SELECT |", "SELECT 1|"]) {
      expect(choices(sql), sql).toEqual([]);
    }
  });
  test("replaces the whole word", () => {
    expect(complete(catalogue, "SELECT start FROM cpu_runs", 10)).toMatchObject({ from: 7, to: 12 });
  });
});

describe("where an error is", () => {
  const marked = (sql: string, error: string) => {
    const wrong = errorPlace(sql, error);
    return wrong && sql.slice(wrong.from, wrong.to);
  };
  test("is told by line and column", () => {
    expect(marked("SELECT 1\nFROM nme x", "there is no column `nme` (at line 2, column 6); here are")).toBe("nme");
    expect(marked("SELECT r.nme, 1 FROM cpu_runs r", "there is no column `r.nme` (at line 1, column 8); here are")).toBe("r.nme");
    expect(marked("SELECT '😀', nme", "no such (at line 1, column 13)")).toBe("nme");
  });
  test("or by the name of what there is not", () => {
    expect(marked("SELECT * FROM Nothing", "there is no table `nothing`; there are a")).toBe("Nothing");
    expect(marked("SELECT foo(1)", "Invalid function 'foo'. Did you mean 'row'?")).toBe("foo");
  });
  test("is the last piece where the text ends too soon", () => {
    expect(marked("SELECT 1 FROM ", "Expected: identifier, found: EOF (at line 1, column 15)")).toBe("FROM");
  });
  test("is not invented", () => {
    expect(errorPlace("SELECT 1", "the query was cancelled")).toBeNull();
    expect(errorPlace("SELECT 1", "(at line 9, column 1)")).toBeNull();
    expect(errorPlace("", "(at line 1, column 1)")).toBeNull();
  });
});

describe("a chart", () => {
  const answer = (names: [string, string][], rows: SqlAnswer["rows"]): SqlAnswer => ({
    columns: names.map(([name, type]) => ({ name, type, unit: null })), rows, more: false, took_ms: 1,
  });
  test("has lines over numbers that come once, in their order", () => {
    const chart = chartOf(answer([["time_ns", "Int64"], ["n", "Int64"], ["note", "Utf8"]], [[20, 2, "x"], [10, null, "y"], [30, 5, "z"], [null, 9, ""]]));
    expect(chart).toEqual({
      kind: "lines", axis: "time_ns", unit: "moment", x: [10, 20, 30], series: [{ name: "n", unit: "", values: [null, 2, 5] }],
    });
  });
  test("has bars over keys, also over numbers that come twice", () => {
    const chart = chartOf(answer([["process", "Utf8"], ["cpu_ns", "Int64"]], [["a", "18446744073709551615"], [null, 3]]));
    expect(chart).toMatchObject({ kind: "bars", keys: ["a", "unknown"], left: 0, series: [{ unit: "ns", values: [18446744073709551615, 3] }] });
    expect(chartOf(answer([["cpu", "UInt16"], ["n", "Int64"]], [[0, 1], [0, 2]])).kind).toBe("bars");
  });
  test("says why there is none", () => {
    for (const [names, rows] of [[[["a", "Int64"]], [[1]]], [[["a", "Utf8"], ["b", "Utf8"]], [["x", "y"]]], [[["a", "Int64"], ["b", "Int64"]], []]] as [[string, string][], SqlAnswer["rows"]][]) {
      expect(chartOf(answer(names, rows)).kind).toBe("none");
    }
  });
  test("shows series of one unit at first, from zero", () => {
    const series = [{ name: "a", unit: "ns", values: [5, null] }, { name: "b", unit: "", values: [-900, 900] }, { name: "c", unit: "ns", values: [7, 1] }];
    expect(firstShown(series)).toEqual([true, false, true]);
    expect(extent(series, [true, false, true])).toEqual([0, 7]);
    expect(extent(series, [true, true, true])).toEqual([-900, 900]);
    expect(extent([], [])).toEqual([0, 1]);
  });
  test("has round values at its side", () => {
    expect(valueSteps([0, 10], 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(valueSteps([-3, 3], 6)).toEqual([-3, -2, -1, 0, 1, 2, 3]);
  });
});

test("of a long table the rows around what is seen are made", () => {
  expect(windowOf(1000, 20, 2000, 200, 10)).toEqual({ from: 90, to: 120 });
  expect(windowOf(5, 20, 0, 200)).toEqual({ from: 0, to: 5 });
  expect(windowOf(5, 20, 90_000, 200)).toEqual({ from: 5, to: 5 });
});

test("a line ends where rows of a regular time are left out, and joins rows of any times", () => {
  const slices = [0, 1, 2, 3, 16, 17, 18];
  expect(slices.slice(1).map((value, place) => value - slices[place]! <= longestStep(slices))).toEqual([true, true, true, false, true, true]);
  expect(longestStep([0, 1, 7, 8, 30, 90])).toBe(Infinity);
  expect(longestStep([0, 5])).toBe(Infinity);
});
