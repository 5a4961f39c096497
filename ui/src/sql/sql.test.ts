import { describe, expect, test } from "vitest";
import type { SqlAnswer, SqlCatalogue } from "../api/types";
import { chartOf, extent, initiallyShown, longestStep, valueSteps } from "./chart";
import { complete } from "./completion";
import { errorPlace } from "./error_place";
import { sourcesOf } from "./statement";
import { tokens } from "./tokens";
import { windowOf } from "./window";

const column = (name: string) => ({ name, type: "Int64", about: null });
const catalogue: SqlCatalogue = {
  tables: [
    { name: "cpu_runs", about: "", view: false, columns: ["cpu", "start_ns", "ready_ns", "process_row"].map(column) },
    { name: "processes", about: "", view: false, columns: ["process_row", "image_name"].map(column) },
  ],
  functions: [{ name: "process", signature: "process(process_row)", about: "" }],
};

/** Returns the suggestions at the position of `|` in the text. */
function choices(sql: string, requested = false): string[] {
  const caret = sql.indexOf("|");
  return complete(catalogue, sql.replace("|", ""), caret, requested)?.choices.map(({ name }) => name) ?? [];
}

describe("tokens of SQL", () => {
  test("contain the whole text", () => {
    for (const sql of ["SELECT 'it''s' -- why?\nFROM \"a\"\"b\" /* x", "a.b>=1.5e-3", "'open", "é😀 \u0000", ""]) {
      expect(
        tokens(sql)
          .map(({ text }) => text)
          .join(""),
      ).toBe(sql);
    }
  });
  test("have their kinds", () => {
    const kinds = tokens("select x, 'a;' FROM t -- c").filter(({ kind }) => kind !== "space");
    expect(kinds.map(({ kind }) => kind)).toEqual(["keyword", "name", "sign", "text", "keyword", "name", "comment"]);
  });
});

test("a statement's sources are its tables with their aliases", () => {
  const sql =
    'WITH q AS (SELECT 1) SELECT * FROM cpu_runs AS r, "Odd ""T""" o JOIN processes USING (process_row) WHERE x IN (1, y)';
  expect(sourcesOf(tokens(sql))).toEqual([
    { name: "q", table: null },
    { name: "r", table: "cpu_runs" },
    { name: "o", table: 'Odd "T"' },
    { name: "processes", table: "processes" },
  ]);
});

describe("completion", () => {
  test("proposes tables after FROM and JOIN", () => {
    expect(choices("SELECT * FROM |", true)).toEqual(["cpu_runs", "processes"]);
    expect(choices("SELECT * FROM cpu_runs r, pr|")).toEqual(["processes"]);
    expect(choices("SELECT * FROM cpu_runs JOIN p|")).toEqual(["processes", "cpu_runs"]);
    expect(choices("WITH mine AS (SELECT 1) SELECT * FROM mi|")).toEqual(["mine"]);
  });
  test("proposes columns of the tables of the statement", () => {
    expect(choices("SELECT sta| FROM cpu_runs")).toEqual(["start_ns"]);
    expect(choices("SELECT * FROM cpu_runs WHERE read|")).toEqual(["ready_ns"]);
    expect(choices("SELECT r.| FROM cpu_runs r")).toEqual(["cpu", "start_ns", "ready_ns", "process_row"]);
    expect(choices("SELECT R.ready| FROM cpu_runs r")).toEqual(["ready_ns"]);
    expect(choices("SELECT ima| FROM processes; SELECT 1 FROM cpu_runs")).toEqual(["image_name"]);
    expect(choices("SELECT 1 FROM processes; SELECT ima| FROM cpu_runs")).toEqual([]);
  });
  test("proposes columns before functions, and prefixes before other parts", () => {
    expect(choices("SELECT proc| FROM cpu_runs")).toEqual(["process_row", "process", "processes"]);
    expect(choices("SELECT row| FROM cpu_runs")).toEqual(["ROW", "ROWS", "process_row"]);
  });
  test("proposes nothing in texts and comments, or without a prefix", () => {
    for (const sql of [
      "SELECT 'pro|'",
      "SELECT 1 -- pro|",
      "SELECT /* pro|",
      'SELECT "pro|',
      "SELECT |",
      "SELECT 1|",
    ]) {
      expect(choices(sql), sql).toEqual([]);
    }
  });
  test("replaces the whole word", () => {
    expect(complete(catalogue, "SELECT start FROM cpu_runs", 10)).toMatchObject({ from: 7, to: 12 });
  });
});

describe("the position of an error", () => {
  const marked = (sql: string, line: number, column: number) => {
    const wrong = errorPlace(sql, { line, column });
    return wrong && sql.slice(wrong.from, wrong.to);
  };
  test("is a whole name", () => {
    expect(marked("SELECT 1\nFROM nme x", 2, 6)).toBe("nme");
    expect(marked("SELECT r.nme, 1 FROM cpu_runs r", 1, 8)).toBe("r.nme");
    expect(marked("SELECT '😀', nme", 1, 13)).toBe("nme");
  });
  test("is the last token if the text ends too early", () => {
    expect(marked("SELECT 1 FROM ", 1, 15)).toBe("FROM");
  });
  test("is unknown outside the text", () => {
    expect(errorPlace("SELECT 1", { line: 9, column: 1 })).toBeNull();
    expect(errorPlace("", { line: 1, column: 1 })).toBeNull();
  });
});

describe("a chart", () => {
  const answer = (names: [string, string][], rows: SqlAnswer["rows"]): SqlAnswer => ({
    columns: names.map(([name, type]) => ({ name, type, unit: name.endsWith("_ns") ? "ns" : "" })),
    rows,
    more: false,
    took_ms: 1,
  });
  test("has lines over distinct numbers, sorted", () => {
    const chart = chartOf(
      answer(
        [
          ["time_ns", "Int64"],
          ["n", "Int64"],
          ["note", "Utf8"],
        ],
        [
          [20, 2, "x"],
          [10, null, "y"],
          [30, 5, "z"],
          [null, 9, ""],
        ],
      ),
    );
    expect(chart).toEqual({
      kind: "lines",
      axis: "time_ns",
      unit: "moment",
      x: [10, 20, 30],
      series: [{ name: "n", unit: "", values: [null, 2, 5] }],
    });
  });
  test("has bars over keys and over repeated numbers", () => {
    const chart = chartOf(
      answer(
        [
          ["process", "Utf8"],
          ["cpu_ns", "Int64"],
        ],
        [
          ["a", "18446744073709551615"],
          [null, 3],
        ],
      ),
    );
    expect(chart).toMatchObject({
      kind: "bars",
      keys: ["a", "unknown"],
      left: 0,
      series: [{ unit: "ns", values: [2 ** 64, 3] }],
    });
    expect(
      chartOf(
        answer(
          [
            ["cpu", "UInt16"],
            ["n", "Int64"],
          ],
          [
            [0, 1],
            [0, 2],
          ],
        ),
      ).kind,
    ).toBe("bars");
  });
  test("has a reason if it is missing", () => {
    for (const [names, rows] of [
      [[["a", "Int64"]], [[1]]],
      [
        [
          ["a", "Utf8"],
          ["b", "Utf8"],
        ],
        [["x", "y"]],
      ],
      [
        [
          ["a", "Int64"],
          ["b", "Int64"],
        ],
        [],
      ],
    ] as [[string, string][], SqlAnswer["rows"]][]) {
      expect(chartOf(answer(names, rows)).kind).toBe("none");
    }
  });
  test("initially shows series of one unit, from zero", () => {
    const series = [
      { name: "a", unit: "ns", values: [5, null] },
      { name: "b", unit: "", values: [-900, 900] },
      { name: "c", unit: "ns", values: [7, 1] },
    ];
    expect(initiallyShown(series)).toEqual([true, false, true]);
    expect(extent(series, [true, false, true])).toEqual([0, 7]);
    expect(extent(series, [true, true, true])).toEqual([-900, 900]);
    expect(extent([], [])).toEqual([0, 1]);
  });
  test("has round values at its axis", () => {
    expect(valueSteps([0, 10], 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(valueSteps([-3, 3], 6)).toEqual([-3, -2, -1, 0, 1, 2, 3]);
  });
});

test("only rows near the visible part of a long table are rendered", () => {
  expect(windowOf(1000, 20, 2000, 200, 10)).toEqual({ from: 90, to: 120 });
  expect(windowOf(5, 20, 0, 200)).toEqual({ from: 0, to: 5 });
  expect(windowOf(5, 20, 90_000, 200)).toEqual({ from: 5, to: 5 });
});

test("a line is interrupted where regular rows are missing, and connects irregular rows", () => {
  const slices = [0, 1, 2, 3, 16, 17, 18];
  expect(slices.slice(1).map((value, place) => value - slices[place] <= longestStep(slices))).toEqual([
    true,
    true,
    true,
    false,
    true,
    true,
  ]);
  expect(longestStep([0, 1, 7, 8, 30, 90])).toBe(Infinity);
  expect(longestStep([0, 5])).toBe(Infinity);
});
