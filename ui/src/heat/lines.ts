// Limits for the durations of interrupts.

import type { Line } from "./chosen";

/**
 * Recommended maximum durations of interrupt service routines and DPCs. Microsoft's "Guidelines for Writing
 * DPC Routines" limits a DPC to 100 µs. The limit for service routines is 25 µs.
 */
export const INTERRUPT_LINES: Line[] = [
  { at: 25_000, label: "25 µs: ISR" },
  { at: 100_000, label: "100 µs: DPC" },
];
