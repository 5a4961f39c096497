// What the server answers to `lanes`: who ran on each CPU.

import type { Id } from "../api/types";

/** Runs of threads, column by column, in the order of time; idle ones are left out. */
export interface Runs {
  start: number[];
  end: number[];
  /** By row of `processes`. */
  process: Id[];
  /** By row of `threads`; not known where runs are not exact. */
  thread: Id[];
  /** How much of the span the CPU was busy, 0 to 1. */
  busy: number[];
}

/** Interrupts, in the same way. */
export interface Interrupts {
  start: number[];
  end: number[];
  /** `isr`, `dpc`, `timer_dpc`… */
  kind: string[];
  /** By row of `images`. */
  image: Id[];
  busy: number[];
}

export interface CpuLane {
  cpu: number;
  runs: Runs;
  interrupts: Interrupts;
  /** From when and until when the trace holds what it did, where that is not all the time. */
  recorded_from_ns?: number | null;
  recorded_until_ns?: number | null;
  /** When runs are doubtful, which are none of the runs. */
  doubtful?: { start: number[]; end: number[] };
}

/** A thread was made ready, and then ran. */
export interface Wake {
  from_cpu: number;
  at_ns: number;
  to_cpu: number;
  run_start_ns: number;
  readying_thread: Id;
  /** A deferred procedure call did it, while that thread was interrupted. */
  by_dpc: boolean;
  thread: Id;
}

type Labels = Record<string, string>;

export interface LanesAnswer {
  start_ns: number;
  end_ns: number;
  cpus: CpuLane[];
  labels: { process: Labels; thread: Labels; image: Labels };
  wakes: Wake[];
  /**
   * Whether each run is there, cut to what is shown; else each column of pixels has the process that ran
   * longest in it.
   */
  exact: boolean;
  /** The same of interrupts. */
  interrupts_exact: boolean;
  /** CPUs that are not given because there are too many. */
  left_out: number;
}

/** A label by its id. */
export function label(labels: Labels, id: Id | undefined): string {
  return (id !== null && id !== undefined && labels[id]) || "unknown";
}
