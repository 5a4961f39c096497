// Limits for the durations of interrupts.

import type { Condition } from "../api/types";
import type { Line } from "./chosen";

/**
 * Recommended maximum durations of interrupt service routines and DPCs. Microsoft's "Guidelines for Writing
 * DPC Routines" limits a DPC to 100 µs. The limit for service routines is 25 µs.
 */
const ISR: Line = { at: 25_000, label: "25 µs: ISR" };
const DPC: Line = { at: 100_000, label: "100 µs: DPC" };

/** Returns true if a kind of interrupt is an interrupt service routine. All other kinds are DPCs. */
export function isServiceRoutine(kind: string): boolean {
  return kind.includes("isr") || kind === "msi";
}

/** Returns the limits for the rows of a table that satisfy the filters. Other tables have no limits. */
export function limitsOf(table: string, filters: readonly Condition[]): Line[] {
  if (table !== "interrupts") return [];
  const kinds = filters.find(({ column, is }) => column === "kind" && is)?.is;
  if (!kinds) return [ISR, DPC];
  return [...(kinds.some(isServiceRoutine) ? [ISR] : []), ...(kinds.every(isServiceRoutine) ? [] : [DPC])];
}
