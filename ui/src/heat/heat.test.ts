import { describe, expect, test } from "vitest";
import type { HeatAnswer } from "../api/types";
import { cellsChosen } from "./choose";
import { most, ramp, rampColour, strength } from "./ramp";
import { classAt, classNear, heightOf, valueTicks, type ValueAxis } from "./value_axis";

const axis: ValueAxis = { bounds: [1_000, 10_000, 100_000, 1_000_000], top: 0, bottom: 300 };

describe("the axis of values", () => {
  test("gives equal factors equal heights", () => {
    expect([1_000, 10_000, 100_000, 1_000_000].map((value) => heightOf(axis, value))).toEqual([300, 200, 100, 0]);
    expect(heightOf(axis, 25_000)).toBeCloseTo(300 - 100 * Math.log10(25), 6);
  });

  test("has no position for values outside it", () => {
    expect(heightOf(axis, 999)).toBeNull();
    expect(heightOf(axis, 1_000_001)).toBeNull();
    expect(heightOf({ ...axis, bounds: [] }, 5)).toBeNull();
  });

  test("finds the class at a position", () => {
    expect([299, 201, 150, 1].map((y) => classAt(axis, y))).toEqual([0, 0, 1, 2]);
    expect([301, -1].map((y) => classAt(axis, y))).toEqual([null, null]);
    expect([999, -50].map((y) => classNear(axis, y))).toEqual([0, 2]);
  });

  test("has labels at round values that fit", () => {
    expect(valueTicks(axis, 16).map(({ value }) => value)).toEqual([1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6]);
    expect(valueTicks({ ...axis, bottom: 60 }, 16).map(({ value }) => value)).toEqual([1e3, 1e4, 1e5, 1e6]);
    expect(valueTicks({ bounds: [], top: 0, bottom: 100 }, 16)).toEqual([]);
  });
});

describe("a chosen rectangle", () => {
  const answer: HeatAnswer = {
    start_ns: 100,
    end_ns: 195,
    bucket_ns: 10,
    buckets: 10,
    bounds: axis.bounds,
    counts: [],
    above: 0,
    below: 0,
    unit: "ns",
    sql: "",
  };

  test("contains whole classes and matches the bounds of filters", () => {
    const corner = (time: number, row: number) => ({ from_ns: time, to_ns: time, row });
    expect(cellsChosen(answer, corner(150, 2), corner(120, 1))).toEqual({
      range: [120, 150],
      from: 10_001,
      to: 1_000_001,
    });
  });

  test("is limited to the answer", () => {
    expect(cellsChosen(answer, { from_ns: -5, to_ns: 0, row: 0 }, { from_ns: 190, to_ns: 200, row: 0 })).toEqual({
      range: [100, 195],
      from: 1_001,
      to: 10_001,
    });
  });
});

describe("colours of counts", () => {
  test("grow with the logarithm, and a count of 1 stays visible", () => {
    expect([0, 1, 10, 100].map((count) => strength(count, 100))).toEqual([0, 0.42, 0.42 + 0.58 / 2, 1]);
    expect(strength(1, 1)).toBe(1);
    expect(
      most([
        [0, 3],
        [7, 1],
      ]),
    ).toBe(7);
    expect(most([])).toBe(0);
  });

  test("go from the background through the accent colour to the ink", () => {
    const colours = ramp([255, 255, 255], [0, 0, 200], [0, 0, 0]);
    expect(rampColour(colours, 0)).toEqual([255, 255, 255]);
    expect(rampColour(colours, 0.65)).toEqual([0, 0, 200]);
    expect(rampColour(colours, 7)).toEqual([0, 0, 50]);
  });
});
