// The values that interrupts are judged by.

import type { Line } from "./answer";

/**
 * How long service routines and DPCs may take: Microsoft's "Guidelines for Writing DPC Routines" asks
 * for no more than 100 µs in a DPC, the rule for service routines is 25 µs.
 */
export const INTERRUPT_LINES: Line[] = [
  { at: 25_000, label: "25 µs: ISR" },
  { at: 100_000, label: "100 µs: DPC" },
];
