// Answer to the request `lanes`: threads and interrupts that ran on each CPU.

import type { Id } from "../api/types";

/** Runs of threads, stored as columns and sorted by time. Idle threads are omitted. */
export interface Runs {
  start: number[];
  end: number[];
  /** Processes of the runs: their rows in `processes`. */
  process: Id[];
  /** Threads of the runs: their rows in `threads`; `null` if runs are not exact. */
  thread: Id[];
  /** Share of the entry's time in which the CPU ran any thread, 0 to 1. */
  busy: number[];
}

/** Interrupts, stored as columns and sorted by time. */
export interface Interrupts {
  start: number[];
  end: number[];
  /** Kinds of the interrupts, such as `isr`, `dpc` or `timer_dpc`. */
  kind: string[];
  /** Images of the interrupt routines: their rows in `images`. */
  image: Id[];
  busy: number[];
}

export interface CpuLane {
  cpu: number;
  runs: Runs;
  interrupts: Interrupts;
  /**
   * Start and end of the time in which the trace has all events of the CPU, if they are not those of the
   * trace.
   */
  recorded_from_ns?: number | null;
  recorded_until_ns?: number | null;
  /** Times of doubtful runs, which `runs` does not contain. */
  doubtful?: { start: number[]; end: number[] };
}

/** Wake: an event in which one thread readied another thread, which then ran. */
export interface Wake {
  from_cpu: number;
  at_ns: number;
  to_cpu: number;
  run_start_ns: number;
  readying_thread: Id;
  /** True if a DPC readied the thread. It interrupted `readying_thread`. */
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
   * True if `runs` contains all runs, limited to the visible time range. If false, it has one entry for each
   * pixel column, with the process that ran longest in this column.
   */
  exact: boolean;
  /** True if `interrupts` contains all interrupts. */
  interrupts_exact: boolean;
  /** Number of CPUs that are omitted because there are too many. */
  left_out: number;
}

/** Returns the label of an id, or `unknown`. */
export function label(labels: Labels, id: Id | undefined): string {
  return (id !== null && id !== undefined && labels[id]) || "unknown";
}
