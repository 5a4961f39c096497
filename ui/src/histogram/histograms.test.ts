import { expect, test } from "vitest";
import type { HistogramAnswer } from "../api/types";
import { commonValues, sharesOf, sumsOf } from "./histograms";

const histogram = (bounds: number[], ...counts: number[][]): HistogramAnswer => ({
  bounds,
  series: counts.map((counts, id) => ({ id, label: `${id}`, counts, above: 0, below: 0 })),
  rest: 0,
  unit: "ns",
  sql: "",
});

test("the common axis covers the values of all traces", () => {
  expect(commonValues([histogram([9, 100, 1000], [1, 1]), histogram([99, 5000], [3])])).toEqual([10, 5000]);
  expect(commonValues([histogram([0, 1])])).toBeNull();
});

test("series are summed up, and shares add up to 1", () => {
  const two = histogram([0, 10, 100], [1, 2], [3, 4]);
  expect(sumsOf(two)).toEqual([4, 6]);
  expect(sharesOf(two)).toEqual([0.4, 0.6]);
  expect(sharesOf(histogram([0, 10], [0]))).toEqual([0]);
});
