// Names of threads.

import type { Named } from "../api/types";

/** Returns the name of a thread, with the name of its process. */
export function threadName({ id, name, process }: Named): string {
  return `thread ${id}${name ? ` “${name}”` : ""} of ${process ?? "an unknown process"}`;
}
