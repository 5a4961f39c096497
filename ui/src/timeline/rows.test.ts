import { expect, test } from "vitest";
import type { TimelineAnswer } from "../api/types";
import { held, linesOf } from "./lines";
import { busiest, rowsOf, stateRows } from "./rows";

const answer = (series: [id: number, values: (number | null)[]][]): TimelineAnswer => ({
  start_ns: 0,
  end_ns: 300,
  bucket_ns: 100,
  buckets: 3,
  series: series.map(([id, values]) => ({ id, label: `thread ${id}`, total: 1, values })),
  rest: null,
  unit: "ns",
  spread: true,
  sql: "",
});

test("a row is full where one row lasts during the whole bucket", () => {
  const focus = linesOf(answer([[1, [100, 50, 0]]]), undefined, { kind: "timeline", measure: "time" }, 2);
  expect(rowsOf(focus, true)[0].parts[0].shares).toEqual([1, 0.5, 0]);
});

test("rows of counts are as full as their share of the largest count", () => {
  const counts = linesOf(
    {
      ...answer([
        [1, [8, 2, null]],
        [2, [0, 4, 4]],
      ]),
      spread: false,
      unit: "",
    },
    undefined,
    { kind: "timeline", measure: "rows" },
    2,
  );
  expect(rowsOf(counts, false).map(({ parts }) => parts[0].shares)).toEqual([
    [1, 0.25, null],
    [0, 0.5, 0.5],
  ]);
});

test("the states of a thread are shares of each bucket, even if it never ran", () => {
  const states = { ran: answer([[7, [100, 25, 0]]]), ready: answer([[9, [0, 75, 100]]]), waited: answer([]) };
  const [first, second] = stateRows([7, 9], states, "thread");
  expect(first.parts.map(({ name, shares }) => [name, shares])).toEqual([
    ["ran", [1, 0.25, 0]],
    ["was ready", [0, 0, 0]],
    ["waited", [0, 0, 0]],
  ]);
  expect([second.label, second.parts[1].shares]).toEqual(["thread 9", [0, 0.75, 1]]);
});

test("threads that ran or were ready longest come first", () => {
  const of = (id: number, total: number) => ({ id, label: "", total, values: [0, 0, 0] });
  const [ran, ready, waited] = [
    { ...answer([]), series: [of(1, 5), of(2, 9)] },
    { ...answer([]), series: [of(1, 6), of(3, 20)] },
    { ...answer([]), series: [of(4, 99), of(5, 100), of(2, 1)] },
  ];
  expect(busiest([ran, ready, waited], 4)).toEqual([3, 1, 2, 5]);
});

test("a state holds until the next value", () => {
  expect(held([null, 2, null, null, 0, null])).toEqual([null, 2, 2, 2, 0, 0]);
});
