import { describe, expect, test } from "vitest";
import type { ComparedRow, CpuStrips, WaitEdge } from "../api/types";
import { readScreen } from "../view/screen";
import { along, height, tens } from "./log_axis";
import { pressed, sorted } from "./sort";
import { meanShare, rowsOf } from "./strips";
import { layout } from "./waits";
import { rate, ratio, signed } from "./words";

const row = (name: string, before_ns: number, after_ns: number, differs = false): ComparedRow => ({
  name,
  before_count: before_ns / 10,
  before_ns,
  after_count: after_ns / 20,
  after_ns,
  differs,
  conclusion: differs ? "differs" : "perhaps chance",
});

describe("the table of changes", () => {
  const rows = [row("b10", 100, 110), row("b9", 50, 0, true), row("a", 0, 30, true), row("c", 20, 20)];
  const names = (column: Parameters<typeof pressed>[1], descending: boolean) =>
    sorted(rows, { column, descending }).map(({ name }) => name);

  test("is sorted by the size of the difference, or by any other column", () => {
    expect(names("difference", true)).toEqual(["b9", "a", "b10", "c"]);
    expect(names("difference", false)).toEqual(["c", "b10", "a", "b9"]);
    expect(names("name", false)).toEqual(["a", "b9", "b10", "c"]);
    expect(names("before", true)).toEqual(["b10", "b9", "c", "a"]);
    expect(names("after", true)).toEqual(["b10", "a", "c", "b9"]);
    // For a new row, the ratio is infinite. For a row that is gone, the ratio is 0.
    expect(names("ratio", true)).toEqual(["a", "b10", "c", "b9"]);
    expect(names("conclusion", true)).toEqual(["a", "b9", "b10", "c"]);
    expect(names("means", true)[3]).toBe("b9");
  });

  test("changes its direction when the same heading is pressed again", () => {
    const first = { column: "difference", descending: true } as const;
    expect(pressed(first, "difference")).toEqual({ column: "difference", descending: false });
    expect(pressed(first, "before")).toEqual({ column: "before", descending: true });
    expect(pressed(first, "name")).toEqual({ column: "name", descending: false });
  });
});

test("changes and ratios read plainly", () => {
  expect([2_500_000, -40, 0].map(signed)).toEqual(["▲ +2.5 ms", "▼ −40 ns", "no change"]);
  expect([ratio(2, 5), ratio(0, 5), ratio(5, 0), ratio(0, 0), ratio(1, 2500)]).toEqual([
    "× 2.5",
    "new",
    "gone",
    "–",
    "× 2,500",
  ]);
  expect([16_323, 0.0237, 7.125].map(rate)).toEqual(["16,323", "0.0237", "7.13"]);
});

test("the axis of durations is logarithmic", () => {
  const range: [number, number] = [1_000, 1_000_000];
  expect([1_000, 10_000, 100_000, 1_000_000, 5, 1e12].map((ns) => Number(along(ns, range).toFixed(6)))).toEqual([
    0, 0.333333, 0.666667, 1, 0, 1,
  ]);
  expect(tens([900, 100_000])).toEqual([1_000, 10_000, 100_000]);
  expect(tens([0, 10])).toEqual([1, 10]);
  // The scale has five equal parts: one for rates up to 0.1 per second (one value in 10 s), and four for the decades
  // up to the maximum of 1,000 per second.
  expect([0, 0.1, 1, 1_000].map((rate) => height(rate, 0.1, 1_000, true))).toEqual([0, 0.2, 0.4, 1]);
  expect(height(250, 0.1, 1_000, false)).toBe(0.25);
});

test("strips of a CPU are one above the other, even if one side lacks the CPU", () => {
  const before: CpuStrips = {
    trace: "before.etl",
    cpus: [
      { cpu: 1, shares: [0.5, 1] },
      { cpu: 0, shares: [0, 0.1] },
    ],
    omitted: 0,
  };
  const after: CpuStrips = { trace: "after.etl", cpus: [{ cpu: 1, shares: [0.25] }], omitted: 0 };
  const rows = rowsOf(before, after);
  expect(rows.map(({ cpu, side, shares }) => [cpu, side, shares.length])).toEqual([
    [0, "before", 2],
    [0, "after", 0],
    [1, "before", 2],
    [1, "after", 1],
  ]);
  expect([meanShare(rows, "before"), meanShare(rows, "after"), meanShare([], "after")]).toEqual([0.4, 0.25, null]);
});

test("programs that waited are on the left, and those that ended the waits on the right", () => {
  const edge = (waiting: string, waker: string | null, before_ns: number, after_ns: number): WaitEdge => ({
    waiting,
    waker,
    before_ns,
    before_count: 1,
    after_ns,
    after_count: 1,
  });
  const edges = [edge("a", "b", 0, 60), edge("c", "b", 50, 20), edge("a", null, 10, 0), edge("b", "b", 0, 1)];
  const { left, right, ribbons, height } = layout(edges, 24);
  expect(left.map(({ name }) => name)).toEqual(["a", "c", "b"]);
  expect(right.map(({ name }) => name)).toEqual(["b", "DPCs"]);
  expect(ribbons.map(({ more }) => more)).toEqual([true, false, false, true]);
  // Widths have the proportions of the changes, and each ribbon ends within its programs.
  expect(ribbons[0].width / ribbons[1].width).toBeCloseTo(2);
  for (const { from, to, width } of ribbons) {
    for (const [at, places] of [
      [from, left],
      [to, right],
    ] as const)
      expect(places.some(({ top, tall }) => at >= top - 1e-9 && at + width <= top + tall + 1e-9)).toBe(true);
  }
  expect(height).toBeGreaterThan(0);
  expect(layout(edges, 2).ribbons).toHaveLength(2);
  expect(layout([], 2).height).toBe(0);
});

test("links show the comparison only if traces are compared", () => {
  const page = { page: "comparison", traces: [0, 1] };
  expect(readScreen(page, [0, 1], true)?.page).toBe("comparison");
  expect(readScreen(page, [0, 1])?.page).toBe("overview");
});
