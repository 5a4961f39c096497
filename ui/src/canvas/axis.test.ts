import { describe, expect, test } from "vitest";
import { across, rangeOf, ticks, timeAt, zoomed, type Axis } from "./axis";

const axis: Axis = { range: [1000, 3000], from: 64, to: 264 };

describe("the time axis", () => {
  test("maps times to pixels and back", () => {
    expect([1000, 2000, 3000].map((time) => across(axis, time))).toEqual([64, 164, 264]);
    expect([64, 164, 264].map((x) => timeAt(axis, x))).toEqual([1000, 2000, 3000]);
  });

  test("keeps times within its range", () => {
    expect(timeAt(axis, 0)).toBe(1000);
    expect(timeAt(axis, 9999)).toBe(3000);
  });

  test("a range has its ends in order and is not empty", () => {
    expect(rangeOf(5, 3)).toEqual([3, 5]);
    expect(rangeOf(5, 5)).toEqual([5, 6]);
  });

  test("zooming keeps the position of the time under the pointer", () => {
    const range = zoomed([0, 1000], 250, 0.5);
    expect(range).toEqual([125, 625]);
    expect((250 - range[0]) / (range[1] - range[0])).toBe(0.25);
    expect(zoomed([10, 11], 10, 0.001)).toEqual([10, 11]);
  });

  test("ticks are at round times", () => {
    expect(ticks([0, 10], 5)).toEqual({ step: 2, at: [0, 2, 4, 6, 8, 10] });
    expect(ticks([1_950_000_000, 2_130_000_000], 4)).toEqual({ step: 50_000_000, at: [1.95e9, 2e9, 2.05e9, 2.1e9] });
    expect(ticks([7, 8], 20).step).toBe(1);
  });
});
