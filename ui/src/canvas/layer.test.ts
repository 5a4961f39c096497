import { expect, test } from "vitest";
import type { Range } from "../api/types";
import { serves, type Shown } from "./layer";

const answer = {};
const shown = (range: Range, of: unknown[] = [answer, null]): Shown => ({
  of,
  axis: { range, from: 64, to: 264 },
  height: 100,
  extent: [0, 1000],
});

test("an image is reused if it contains all data and is only moved", () => {
  expect(serves(shown([0, 1000]), shown([0, 1000]))).toBe(true);
  expect(serves(shown([0, 1000]), shown([300, 1300]))).toBe(true);
});

test("it is painted again after a zoom, or if it lacks data that becomes visible", () => {
  expect(serves(shown([0, 1000]), shown([0, 500]))).toBe(false);
  expect(serves(shown([0, 500]), shown([100, 600]))).toBe(false);
});

test("it is painted again if its inputs or its size change", () => {
  expect(serves(shown([0, 1000]), shown([0, 1000], [{}, null]))).toBe(false);
  expect(serves(shown([0, 1000]), shown([0, 1000], [answer, "isolated"]))).toBe(false);
  expect(serves(shown([0, 1000]), { ...shown([0, 1000]), height: 99 })).toBe(false);
});
