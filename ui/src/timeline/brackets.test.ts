import { expect, test } from "vitest";
import { place, type Bracket } from "./brackets";

const bracket = (key: string, from: number, to: number): Bracket => ({
  key,
  range: [from, to],
  text: key,
  severity: "problem",
});

test("brackets are at their times", () => {
  const { placed } = place([bracket("a", 250, 750)], [0, 1000], 1000, 3);
  expect(placed.map(({ left, width, row }) => [left, width, row])).toEqual([[250, 500, 0]]);
});

test("brackets outside of the time range are not placed, and longer ones are cut", () => {
  const { placed, left } = place(
    [bracket("a", 0, 90), bracket("b", 50, 400), bracket("c", 900, 999)],
    [100, 500],
    400,
    3,
  );
  expect(placed.map(({ bracket, left, width }) => [bracket.key, left, width])).toEqual([["b", 0, 300]]);
  expect(left).toBe(0);
});

test("brackets never overlap in a row", () => {
  const many = Array.from({ length: 40 }, (_, at) => bracket(`${at}`, (at * 37) % 900, ((at * 37) % 900) + 60));
  const { placed, left } = place(many, [0, 1000], 800, 3);
  for (const one of placed)
    for (const other of placed)
      if (one !== other && one.row === other.row)
        expect(one.left + one.width <= other.left || other.left + other.width <= one.left).toBe(true);
  expect(placed.length + left).toBe(40);
  expect(placed.length).toBeGreaterThan(3);
});

test("a moment is as wide as its number", () => {
  const { placed } = place([bracket("a", 1000, 1000)], [0, 1000], 500, 1);
  expect(placed[0].left + placed[0].width).toBeLessThanOrEqual(500);
});
