// Position of an error in a query.

import type { Place } from "../api/types";
import { tokens } from "./tokens";

/** Range of characters that is marked as wrong. */
export interface Wrong {
  from: number;
  to: number;
}

/** Returns the part of a query to mark for an error at a position. */
export function errorPlace(sql: string, { line, column }: Place): Wrong | null {
  const lines = sql.split("\n");
  if (line < 1 || line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  // The server counts Unicode characters, but strings in JavaScript count UTF-16 units.
  const at = before + [...lines[line - 1]].slice(0, column - 1).join("").length;
  const pieces = tokens(sql);
  let found = pieces.findIndex(({ from, to, kind }) => from <= at && at < to && kind !== "space");
  if (found >= 0) {
    // If a point follows the name, mark the whole name, such as `r.column`.
    while (pieces[found + 1]?.text === "." && pieces[found + 2]) found += 2;
    return { from: at, to: pieces[found].to };
  }
  // If the error is at the end of the text, mark the last token.
  const last = pieces.findLast(({ from, kind }) => from <= at && kind !== "space" && kind !== "comment");
  return last ? { from: last.from, to: last.to } : null;
}
