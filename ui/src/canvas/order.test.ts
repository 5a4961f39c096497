import { expect, test } from "vitest";
import { containing, firstAfter, nearest, upTo } from "./order";

const start = [10, 20, 40];
const end = [15, 30, 41];

test("a run contains its start and not its end", () => {
  const found = [9, 10, 14, 15, 20, 29, 30, 40, 41].map((time) => containing(start, end, time));
  expect(found).toEqual([-1, 0, 0, -1, 1, 1, -1, 2, -1]);
});

test("the nearest run is within the requested distance", () => {
  expect(nearest(start, end, 17, 2)).toBe(0);
  expect(nearest(start, end, 18, 2)).toBe(1);
  expect(nearest(start, end, 35, 2)).toBe(-1);
  expect(nearest([], [], 35, 2)).toBe(-1);
});

test("binary search and linear search agree", () => {
  for (let time = 0; time < 50; time++) {
    expect(upTo(start, time)).toBe(start.filter((other) => other <= time).length);
    const after = end.findIndex((other) => other > time);
    expect(firstAfter(end, time)).toBe(after < 0 ? end.length : after);
  }
});
