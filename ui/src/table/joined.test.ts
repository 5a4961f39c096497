import { expect, test } from "vitest";
import type { PivotAnswer } from "../api/types";
import { byDifference, joinedRows } from "./joined";

const pivot = (groups: [string, number | null][], groups_total = groups.length): PivotAnswer => ({
  rows: 0,
  groups_total,
  totals: [],
  groups: groups.map(([label, value], id) => ({ id, label, rows: 1, values: [value], leaf: true })),
  exact: true,
  sql: "",
});

test("groups are joined by label, with difference and ratio to the first trace", () => {
  const rows = byDifference(
    joinedRows(
      [
        pivot([
          ["a", 10],
          ["b", 4],
        ]),
        pivot([
          ["b", 6],
          ["c", 50],
        ]),
      ],
      0,
      true,
    ),
  );
  expect(rows.map(({ label, values, differences, ratios }) => [label, values, differences[1], ratios[1]])).toEqual([
    ["c", [0, 50], 50, null],
    ["a", [10, 0], -10, 0],
    ["b", [4, 6], 2, 1.5],
  ]);
});

test("a group that a cut list lacks is unknown, and so is a maximum of no rows", () => {
  const [a] = joinedRows([pivot([["a", 10]]), pivot([["b", 6]], 300)], 0, true);
  expect(a.values).toEqual([10, null]);
  const [b] = joinedRows([pivot([["a", 10]]), pivot([])], 0, false);
  expect([b.values[1], b.differences[1]]).toEqual([null, null]);
});
