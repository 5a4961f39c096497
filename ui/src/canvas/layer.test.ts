import { expect, test } from "vitest";
import type { Range } from "../api/types";
import { serves, type Shown } from "./layer";

const answer = {};
const shown = (range: Range, of: unknown[] = [answer, null]): Shown => ({
  of, axis: { range, from: 64, to: 264 }, height: 100, extent: [0, 1000],
});

test("a picture is kept while all that there is of it is only moved", () => {
  expect(serves(shown([0, 1000]), shown([0, 1000]))).toBe(true);
  expect(serves(shown([0, 1000]), shown([300, 1300]))).toBe(true);
});

test("it is painted anew when zoomed, or when it lacks what would come into view", () => {
  expect(serves(shown([0, 1000]), shown([0, 500]))).toBe(false);
  expect(serves(shown([0, 500]), shown([100, 600]))).toBe(false);
});

test("or when it is of something else, or another size", () => {
  expect(serves(shown([0, 1000]), shown([0, 1000], [{}, null]))).toBe(false);
  expect(serves(shown([0, 1000]), shown([0, 1000], [answer, "isolated"]))).toBe(false);
  expect(serves(shown([0, 1000]), { ...shown([0, 1000]), height: 99 })).toBe(false);
});
