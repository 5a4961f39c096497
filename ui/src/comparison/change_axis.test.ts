import { expect, test } from "vitest";
import { differenceAxis, ratioAxis } from "./change_axis";

test("no change is in the middle of both axes, and both contain all changes", () => {
  for (const [axis, none, changes] of [
    [ratioAxis([0.25, 8], 2), 1, [0.25, 8]],
    [ratioAxis([0.99, 1.004], 1.02), 1, [0.99, 1.004]],
    [ratioAxis([], 2), 1, []],
    [differenceAxis([-3, 7]), 0, [-3, 7]],
    [differenceAxis([0, 0]), 0, [0]],
  ] as const) {
    expect(axis.share(none)).toBe(0.5);
    for (const change of [...changes, ...axis.marks]) {
      expect(axis.share(change)).toBeGreaterThanOrEqual(0);
      expect(axis.share(change)).toBeLessThanOrEqual(1);
    }
  }
});

test("a ratio and its inverse are equally far from no change", () => {
  const axis = ratioAxis([4], 2);
  expect(axis.share(4) + axis.share(0.25)).toBeCloseTo(1);
  expect(axis.share(0)).toBeLessThan(0);
});

test("lines are at powers of two for large ratios, and at round steps for small ones", () => {
  expect(ratioAxis([4.1], 2).marks).toEqual([2, 4, 1 / 2, 1 / 4]);
  expect(ratioAxis([1000], 2).marks).toEqual([16, 256, 1 / 16, 1 / 256]);
  const above = ratioAxis([1.045], 1.02).marks.filter((ratio) => ratio > 1);
  expect(above.map((ratio) => Number(ratio.toFixed(9)))).toEqual([1.02, 1.04]);
  expect(differenceAxis([-700, 650]).marks).toEqual([200, 400, 600, -200, -400, -600]);
});
