import { expect, test } from "vitest";
import { medianAxis } from "./axis";

test("an axis of equal values has one mark in the middle", () => {
  for (const value of [0, 10, -3, 1e300]) {
    const { marks, share } = medianAxis([value, value, value]);
    expect(marks).toEqual([value]);
    expect(share(value)).toBeCloseTo(0.5);
  }
});

test("an axis contains all values, and is logarithmic if all are positive", () => {
  const axis = medianAxis([1, 10, 100]);
  expect(axis.share(1)).toBeGreaterThan(0);
  expect(axis.share(10)).toBeCloseTo(0.5);
  expect(axis.share(100)).toBeLessThan(1);
  expect(axis.marks).toHaveLength(5);
  expect(axis.marks[2]).toBeCloseTo(10);
  const linear = medianAxis([-50, 50]);
  expect(linear.share(0)).toBeCloseTo(0.5);
  expect(linear.marks[2]).toBeCloseTo(0);
});

test("runs without values have an empty axis", () => {
  expect(medianAxis([]).marks).toEqual([]);
});
