import { expect, test } from "vitest";
import { SHORTEST, panned, parseTime, within, zoomed } from "./range";

const whole: [number, number] = [0, 32_000_000_000];

test("a range stays within the trace and keeps its length", () => {
  expect(within([-5e9, 5e9], whole)).toEqual([0, 10e9]);
  expect(within([30e9, 40e9], whole)).toEqual([22e9, 32e9]);
  expect(within([0, 99e9], whole)).toEqual(whole);
  expect(within([5, 5], whole)).toEqual([5, 5 + SHORTEST]);
});

test("panning moves by a share and stops at the ends", () => {
  expect(panned([10e9, 20e9], 0.1, whole)).toEqual([11e9, 21e9]);
  expect(panned([0, 10e9], -0.5, whole)).toEqual([0, 10e9]);
  expect(panned([21e9, 31e9], 0.5, whole)).toEqual([22e9, 32e9]);
});

test("zooming keeps the position of a time", () => {
  const [from, to] = zoomed([10e9, 20e9], 0.5, whole, 12e9);
  expect([from, to]).toEqual([11e9, 16e9]);
  expect((12e9 - from) / (to - from)).toBeCloseTo(0.2);
});

test("times are parsed with and without units", () => {
  const times: [string, number | null][] = [
    ["1.5", 1_500_000_000],
    ["30.333 s", 30_333_000_000],
    ["20ms", 20_000_000],
    ["100 µs", 100_000],
    ["100us", 100_000],
    ["7 ns", 7],
    ["1,5", 1_500_000_000],
    ["", null],
    ["soon", null],
    ["-3", null],
    ["1 h", null],
  ];
  for (const [text, time] of times) expect(parseTime(text), text).toBe(time);
});
