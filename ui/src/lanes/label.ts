// Labels of the ids in lanes.

import type { Id } from "../api/types";

/** Returns the label of an id, or `unknown`. */
export function label(labels: Record<number, string>, id: Id | undefined): string {
  return (id !== null && id !== undefined && labels[id]) || "unknown";
}
