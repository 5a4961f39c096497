// Lanes of a timeline: one row for each value of a key, filled by shares of time.

import type { Id, TimelineAnswer } from "../api/types";
import { valueColor } from "../colour";
import type { Line, Lines } from "./lines";
import { bucketLength } from "./lines";

/** Part of a row, such as the time in which a thread was ready. */
export interface Part {
  name: string;
  color: string;
  /** Filled share of the row in each bucket, 0 to 1. In a bucket, the parts of the row are stacked. */
  shares: (number | null)[];
}

/** Row of a timeline. */
export interface Row {
  id: Line["id"];
  label: string;
  color: string;
  parts: Part[];
}

/** Colours of a thread's states. Threads that run have the colour of their process. */
export const STATES = { ready: "var(--gold)", waiting: "var(--idle)" } as const;

/**
 * Returns a row for each line, except the line for all other groups. A row is full where it has the largest value of
 * all lines. If values are numbers of things at the same time (`isAtOnce`), a value below 1 never fills a row.
 */
export function rowsOf({ lines, unit, about }: Lines, isAtOnce: boolean): Row[] {
  const most = lines.reduce(
    (most, { values }) => values.reduce<number>((all, one) => Math.max(all, one ?? 0), most),
    0,
  );
  const whole = isAtOnce ? Math.max(most, 1) : most;
  return lines
    .filter(({ id }) => id !== "rest")
    .map(({ id, label, color, values }) => ({
      id,
      label,
      color,
      parts: [
        {
          name: unit === "share" ? `${about} (full: ${+(whole * 100).toFixed(1)} %)` : about,
          color,
          shares: values.map((value) => (value === null || whole === 0 ? null : Math.min(value / whole, 1))),
        },
      ],
    }));
}

/** Times of threads in each state, in the same buckets. */
export interface States {
  ran: TimelineAnswer;
  ready: TimelineAnswer;
  waited: TimelineAnswer;
}

/**
 * Returns the ids of the threads with the most time in which they ran or were ready. Threads that only waited come last.
 * The answers are those of the states: ran, ready, waited.
 */
export function busiest([ran, ready, waited]: readonly TimelineAnswer[], most: number): Id[] {
  const times = new Map<Id, [busy: number, waited: number]>();
  for (const answer of [ran, ready, waited]) {
    for (const { id, total } of answer.series) {
      const [busy, idle] = times.get(id) ?? [0, 0];
      times.set(id, answer === waited ? [busy, idle + (total ?? 0)] : [busy + (total ?? 0), idle]);
    }
  }
  return [...times]
    .sort(([, one], [, other]) => other[0] - one[0] || other[1] - one[1])
    .slice(0, most)
    .map(([id]) => id);
}

/** Returns the share of each bucket that a series covers. */
function sharesOf(answer: TimelineAnswer, id: Id): number[] {
  const series = answer.series.find((one) => one.id === id);
  return Array.from({ length: answer.buckets }, (_, place) => {
    const value = series?.values[place];
    return value === null || value === undefined ? 0 : value / bucketLength(answer, place);
  });
}

/** Returns a row for each thread, with the shares of time in which it ran, was ready and waited. */
export function stateRows(ids: readonly Id[], { ran, ready, waited }: States, by: string): Row[] {
  return ids.map((id) => {
    const series = [ran, ready, waited].flatMap((answer) => answer.series.find((one) => one.id === id) ?? []);
    const label = series[0]?.label ?? "unknown";
    const color = valueColor(by, label);
    return {
      id,
      label,
      color,
      parts: [
        { name: "ran", color, shares: sharesOf(ran, id) },
        { name: "was ready", color: STATES.ready, shares: sharesOf(ready, id) },
        { name: "waited", color: STATES.waiting, shares: sharesOf(waited, id) },
      ],
    };
  });
}
