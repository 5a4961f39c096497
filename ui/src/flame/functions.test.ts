import { expect, test } from "vitest";
import type { ButterflyAnswer } from "../api/types";
import { joinedFunctions } from "./functions";

const side = (total: number, functions: [string, number][], functions_total = functions.length): ButterflyAnswer => ({
  total,
  known: 1,
  functions_total,
  functions: functions.map(([label, total]) => ({ label, total, self: total })),
  unit: "ns",
});

test("functions of both sides have their change in shares", () => {
  const [a, b, c] = joinedFunctions(
    side(100, [
      ["a", 50],
      ["b", 10],
    ]),
    side(200, [
      ["a", 20],
      ["c", 40],
    ]),
  );
  expect(a).toMatchObject({ label: "a", total: 50, base: 20, change: 0.4 });
  expect(b).toMatchObject({ label: "b", base: 0, change: 0.1 });
  expect(c).toMatchObject({ label: "c", total: 0, base: 40, change: -0.2 });
});

test("functions that a list leaves out are unknown, not absent", () => {
  const [a] = joinedFunctions(side(100, [["a", 50]]), side(200, [["c", 40]], 9));
  expect([a.base, a.change]).toEqual([null, null]);
  expect(joinedFunctions(side(100, [["a", 50]]), null)[0].change).toBeNull();
});
