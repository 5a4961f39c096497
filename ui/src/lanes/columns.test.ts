import { expect, test } from "vitest";
import { bars, type Bar } from "./columns";

function drawn(spans: [from: number, to: number, busy?: number][]): Bar[] {
  const found: Bar[] = [];
  const all = {
    length: spans.length,
    left: (at: number) => spans[at][0],
    right: (at: number) => spans[at][1],
    busy: (at: number) => spans[at][2] ?? 1,
  };
  bars(all, (bar) => found.push({ ...bar, share: Math.round(bar.share * 1000) / 1000 }));
  return found;
}

test("a span of one column or more has a separate bar", () => {
  expect(
    drawn([
      [0, 1],
      [2.4, 7.6, 0.5],
    ]),
  ).toEqual([
    { left: 0, right: 1, share: 1, place: 0 },
    { left: 2, right: 8, share: 0.5, place: 1 },
  ]);
});

test("shorter spans share a column whose height is the sum of their lengths", () => {
  expect(
    drawn([
      [3.1, 3.2],
      [3.3, 3.6],
      [3.9, 4.05],
      [4.5, 4.6],
    ]),
  ).toEqual([
    { left: 3, right: 4, share: 0.55, place: 1 },
    { left: 4, right: 5, share: 0.1, place: 3 },
  ]);
});

test("a very short span does not fill a column", () => {
  expect(drawn([[5.5, 5.501]])).toEqual([{ left: 5, right: 6, share: 0.001, place: 0 }]);
  expect(drawn([])).toEqual([]);
});
