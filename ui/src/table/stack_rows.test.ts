import { expect, test } from "vitest";
import type { FlameAnswer } from "../api/types";
import { callRows, frameId, joinedCalls } from "./stack_rows";

const tree = (frames: string[], parent: (number | null)[], frame: number[], total: number[]): FlameAnswer => ({
  total: 10,
  compared_total: null,
  known: 1,
  frames,
  nodes: { parent, frame, self: total, total, compared: null },
  cut: 0,
  unit: "",
  sql: null,
});
// main calls read and write; only reads take long enough to be in the tree of times.
const rows = tree(["main", "read", "write"], [null, 0, 0], [0, 1, 2], [10, 3, 7]);
const times = tree(["read", "main"], [null, 0], [1, 0], [900, 900]);

test("calls have their counts and times in one row", () => {
  const calls = joinedCalls([rows, times]);
  const [main] = callRows(calls, [], [0, null, 1], 0);
  expect(main).toMatchObject({ label: "main", rows: 10, values: [10, null, 900], leaf: false });
  const below = callRows(calls, [frameId("main")], [0, null, 1], 0);
  expect(below.map(({ label, values, leaf }) => [label, values, leaf])).toEqual([
    ["write", [7, null, null], true],
    ["read", [3, null, 900], true],
  ]);
  expect(callRows(calls, [frameId("main")], [0], 1).map(({ label }) => label)).toEqual(["read", "write"]);
});

test("a path that the stacks do not have has no rows", () => {
  expect(callRows(joinedCalls([rows]), [5], [0], 0)).toEqual([]);
  expect(callRows(joinedCalls([]), [], [0], 0)).toEqual([]);
});
