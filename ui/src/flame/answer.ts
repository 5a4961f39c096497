// What the server answers to `flame` and `butterfly`: where the weight of stacks lies.

/** Calls, depth first, each after its caller; column by column. */
export interface Nodes {
  /** Place of the caller among the nodes; `null` of outermost calls. */
  parent: (number | null)[];
  /** Place in the frames. */
  frame: number[];
  /** Weight that ends in the call. */
  self: number[];
  /** Weight in it and all that it calls. */
  total: number[];
  /** The total in what it is compared with. */
  compared: number[] | null;
}

/** A tree of calls. */
export interface FlameAnswer {
  /** The weight of all rows, and in what it is compared with. */
  total: number;
  compared_total: number | null;
  /** What share of the weight has a stack. */
  known: number;
  /** Names of frames: `ntoskrnl.exe!KiSwapThread`. */
  frames: string[];
  nodes: Nodes;
  /** Weight in calls that are left out for being light. */
  cut: number;
  unit: string;
  sql: string | null;
}

/** Functions, or the callers and callees of one. */
export interface ButterflyAnswer {
  total: number;
  known: number;
  functions_total: number;
  functions?: { label: string; self: number; total: number }[];
  frames?: string[];
  /** Who called the function, from it outwards; the first node is the function. */
  callers?: Nodes;
  /** What it called; the first node is the function. */
  callees?: Nodes;
  unit: string;
}

/** The module of a frame: `ntoskrnl.exe` of `ntoskrnl.exe!KiSwapThread` and of `ntoskrnl.exe+0x12`. */
export function moduleOf(frame: string): string {
  const end = frame.search(/!|\+0x/);
  return end > 0 ? frame.slice(0, end) : frame;
}

/** The function of a frame; the frame if it names none, the module if it is not known. */
export function functionOf(frame: string): string {
  const name = frame.slice(frame.indexOf("!") + 1);
  return name === "?" ? moduleOf(frame) : name;
}
