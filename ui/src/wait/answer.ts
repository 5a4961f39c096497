// Answer to the request `wait`: the explanation of one wait or run of a thread.

import type { Evidence, Finding, Verdict } from "../api/types";

/** Thread. `row` is its row in `threads`, which distinguishes it from other threads with the same id. */
export interface Thread {
  id: number | null;
  row: number | null;
  name: string | null;
  /** Label of the process, such as `chrome.exe (144)`. */
  process: string | null;
}

/** Step in the story of a wait. It ends when the next step starts. */
export interface Step {
  kind: "switched_out" | "readied" | "waited_behind" | "ran";
  at_ns: number;
  until_ns: number | null;
  sentence: string;
  cpu: number | null;
  /** Thread that caused the step, if it is another thread. */
  thread: Thread | null;
  wait_reason: string | null;
  state: string | null;
  priority: number | null;
  rank: number | null;
  /** Frames of the stack, outermost call last. */
  stack: string[] | null;
  evidence: Evidence | null;
}

/** Link in the chain of causes. Each link is earlier than the previous one. */
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
  /** State of the thread at the time `at_ns`. */
  kind: "waiting" | "ready" | "running" | "unknown";
  /** Run that followed the wait. If the thread was running at `at_ns`, this run. */
  run: { cpu: number; start_ns: number; end_ns: number | null; priority: number | null; rank: number | null } | null;
  story: Step[];
  theories: Verdict[];
  findings: Finding[];
  chain: Link[];
}

/** Returns the name of a thread, with the name of its process. */
export function threadName({ id, name, process }: Thread): string {
  const thread = id === null ? "an unknown thread" : `thread ${id}`;
  return `${thread}${name ? ` “${name}”` : ""} of ${process ?? "an unknown process"}`;
}
