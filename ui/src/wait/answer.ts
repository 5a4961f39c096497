// What the server answers to `wait`: one wait or run of a thread, explained.

import type { Evidence, Finding, Verdict } from "../api/types";

/** A thread: `row` tells it from others that had the same id. */
export interface Thread {
  id: number | null;
  row: number | null;
  name: string | null;
  /** `chrome.exe (144)`. */
  process: string | null;
}

/** One thing that happened, until the next did. */
export interface Step {
  kind: "switched_out" | "readied" | "waited_behind" | "ran";
  at_ns: number;
  until_ns: number | null;
  sentence: string;
  cpu: number | null;
  /** Who did it, where that is another thread. */
  thread: Thread | null;
  wait_reason: string | null;
  state: string | null;
  priority: number | null;
  rank: number | null;
  /** Outermost call last. */
  stack: string[] | null;
  evidence: Evidence | null;
}

/** One stretch of what led to it, back in time. */
export interface Link {
  thread: Thread;
  from_ns: number;
  to_ns: number;
  why: string;
  cpu: number | null;
}

export interface WaitAnswer {
  thread: Thread;
  at_ns: number;
  /** What it did at that moment. */
  kind: "waiting" | "ready" | "running" | "unknown";
  /** The run that ended the wait, or the run itself. */
  run: { cpu: number; start_ns: number; end_ns: number | null; priority: number | null; rank: number | null } | null;
  story: Step[];
  theories: Verdict[];
  findings: Finding[];
  chain: Link[];
}

/** A thread as people write it. */
export function called({ id, name, process }: Thread): string {
  const thread = id === null ? "an unknown thread" : `thread ${id}`;
  return `${thread}${name ? ` “${name}”` : ""} of ${process ?? "an unknown process"}`;
}
