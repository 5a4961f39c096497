// Workspace of a set of traces: the screen with its tabs, filters and notes. The server keeps it for the next time that
// the same traces are opened, and it can be saved as a file.

import type { TraceFacts } from "../api/types";
import { readScreen, type Screen } from "./screen";

/** Word by which a file with a workspace is recognised. */
const KIND = "laglab view";

/** Workspace as it is stored. Times and ids of traces refer to the traces in `traces`, in this order. */
interface Stored {
  kind: typeof KIND;
  version: 1;
  /** Names of the traces, for people who read the file. */
  traces: string[];
  screen: Screen;
}

/**
 * Returns the name under which the workspace of traces is kept. It depends on the recordings, not on the places of
 * their files.
 */
export function workspaceName(traces: readonly TraceFacts[]): string {
  const facts = traces.map(({ name, start_utc, size_bytes, only }) => [name, start_utc, size_bytes, only]);
  // Two FNV-1a hashes with different starts are long enough to distinguish the traces of a user.
  const hash = (start: number) => {
    let state = start;
    for (const unit of JSON.stringify(facts)) state = Math.imul(state ^ unit.codePointAt(0)!, 0x01000193);
    return (state >>> 0).toString(16).padStart(8, "0");
  };
  return `workspace-${hash(0x811c9dc5)}${hash(0x9e3779b1)}`;
}

/** Returns the document that is kept or saved. */
export function stored(traces: readonly TraceFacts[], screen: Screen): Stored {
  return { kind: KIND, version: 1, traces: traces.map(({ name }) => name), screen: { ...screen, wait: null } };
}

/** Reads a kept or saved document. Returns `null` if it is no workspace. Invalid parts are ignored, as in links. */
export function readStored(document: unknown, open: readonly number[], compared: boolean): Screen | null {
  if (typeof document !== "object" || document === null) return null;
  const { kind, screen } = document as Partial<Stored>;
  if (kind !== KIND || typeof screen !== "object") return null;
  try {
    return readScreen(screen, open, compared);
  } catch {
    return null;
  }
}

/** Returns true if a screen contains something that is worth keeping. */
export function isWorthKeeping({ tabs, notes, filter, query }: Screen): boolean {
  return notes.length > 0 || filter.length > 0 || query !== null || tabs.some(({ panels }) => panels.length > 0);
}
