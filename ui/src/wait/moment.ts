// Rows of evidence that tell of a thread at a time lead to its story then.

import type { Cell, Evidence, Finding } from "../api/types";

/** A moment of a thread. */
export interface Moment {
  thread_id: number;
  at_ns: number;
}

/** The moment that a row tells of: amid a wait, or at the beginning of what else it is about. */
export function momentOf({ columns }: Evidence, row: readonly Cell[]): Moment | null {
  const number = (name: string) => {
    const cell = row[columns.findIndex((column) => column.name === name)];
    return typeof cell === "number" ? cell : null;
  };
  const thread_id = number("thread_id");
  if (thread_id === null) return null;
  const [ready, start] = [number("ready_from_ns"), number("start_ns")];
  if (ready !== null && start !== null) return { thread_id, at_ns: ready + Math.floor((start - ready) / 2) };
  const at_ns = number("from_ns") ?? start ?? number("first_ns");
  return at_ns === null ? null : { thread_id, at_ns };
}

/** The wait that a finding is about first of all, if it is about waits. */
export function longestWait({ theory, evidence: [first] }: Finding): Moment | null {
  const [row] = first?.rows ?? [];
  return theory === "long-waits" && first && row ? momentOf(first, row) : null;
}
