// Evidence rows that are about a thread at a time.

import type { Cell, Evidence, Finding } from "../api/types";

/** Thread, and a time in nanoseconds since the trace's start. */
export interface Moment {
  thread_id: number;
  at_ns: number;
}

/**
 * Returns the thread and the time of a row. For a wait, the time is its middle. For all other rows, it is
 * the start.
 */
export function momentOf({ columns }: Evidence, row: readonly Cell[]): Moment | null {
  const number = (name: string) => {
    const cell = row[columns.findIndex((column) => column.name === name)];
    return typeof cell === "number" ? cell : null;
  };
  const thread_id = number("thread_id");
  if (thread_id === null) return null;
  const [ready, start] = [number("ready_from_ns"), number("start_ns")];
  if (ready !== null && start !== null) return { thread_id, at_ns: ready + Math.floor((start - ready) / 2) };
  const at_ns = number("from_ns") ?? start ?? number("first_ns") ?? ready;
  return at_ns === null ? null : { thread_id, at_ns };
}

/** Returns the thread and the time of the first wait, if the finding is about waits; otherwise `null`. */
export function longestWait({ theory, evidence: [first] }: Finding): Moment | null {
  const [row] = first?.rows ?? [];
  return theory === "long-waits" && first && row ? momentOf(first, row) : null;
}
