// Answers to the requests `flame` and `butterfly`: stacks with their weights.

/** Calls, stored as columns. They are in depth-first order, so each call follows its caller. */
export interface Nodes {
  /** Index of the caller in these columns; `null` for outermost calls. */
  parent: (number | null)[];
  /** Index of the frame's name. */
  frame: number[];
  /** Weight of the call without its callees. */
  self: number[];
  /** Weight of the call with its callees. */
  total: number[];
  /** Weight of the call with its callees, in the time range or trace to compare with. */
  compared: number[] | null;
}

/** Call tree with the names of its frames. */
export interface FlameAnswer {
  /** Weight of all rows, in this time range and in the time range or trace to compare with. */
  total: number;
  compared_total: number | null;
  /** Share of the weight that belongs to rows with a stack, 0 to 1. */
  known: number;
  /** Names of frames, such as `ntoskrnl.exe!KiSwapThread`. */
  frames: string[];
  nodes: Nodes;
  /** Weight of calls that are omitted because they are light. */
  cut: number;
  unit: string;
  sql: string | null;
}

/** All functions with their weights, or the callers and callees of one function. */
export interface ButterflyAnswer {
  total: number;
  known: number;
  functions_total: number;
  functions?: { label: string; self: number; total: number }[];
  frames?: string[];
  /** Tree of the callers. Its first node is the function. */
  callers?: Nodes;
  /** Tree of the callees. Its first node is the function. */
  callees?: Nodes;
  unit: string;
}

/**
 * Returns the module of a frame, such as `ntoskrnl.exe` for `ntoskrnl.exe!KiSwapThread` and
 * `ntoskrnl.exe+0x12`.
 */
export function moduleOf(frame: string): string {
  const end = frame.search(/!|\+0x/);
  return end > 0 ? frame.slice(0, end) : frame;
}

/**
 * Returns the function of a frame. If the frame contains no function, returns the whole frame. If the
 * function is unknown (`?`), returns the module.
 */
export function functionOf(frame: string): string {
  const name = frame.slice(frame.indexOf("!") + 1);
  return name === "?" ? moduleOf(frame) : name;
}
