// Where in a query an error is.

import type { Place } from "./answer";
import { nameIn } from "./statement";
import { tokens } from "./tokens";

/** What is wrong, from character to character. */
export interface Wrong {
  from: number;
  to: number;
}

/** The piece of a query that an error is about: at the place it names, or the table it does not know. */
export function errorPlace(sql: string, error: string, place: Place | null = null): Wrong | null {
  const said = /\(at line (\d+), column (\d+)\)/.exec(error);
  const at = place ?? (said && { line: Number(said[1]), column: Number(said[2]) });
  if (at) return tokenAt(sql, at);
  const unknown = /no (?:table|column|function) `([^`]+)`|nvalid function '([^']+)'/.exec(error);
  const name = unknown?.[1] ?? unknown?.[2];
  if (!name) return null;
  const found = tokens(sql).find((token) => /name|quoted/.test(token.kind) && nameIn(token) === name.toLowerCase());
  return found ? { from: found.from, to: found.to } : null;
}

function tokenAt(sql: string, { line, column }: Place): Wrong | null {
  const lines = sql.split("\n");
  if (line < 1 || line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  // Columns count characters, not UTF-16 units.
  const at = before + [...lines[line - 1]].slice(0, column - 1).join("").length;
  const pieces = tokens(sql);
  let found = pieces.findIndex(({ from, to, kind }) => from <= at && at < to && kind !== "space");
  if (found >= 0) {
    // A column is wrong together with its table: `r.column`.
    while (pieces[found + 1]?.text === "." && pieces[found + 2]) found += 2;
    return { from: at, to: pieces[found].to };
  }
  // At the end there is nothing to mark but the last piece.
  const last = pieces.findLast(({ from, kind }) => from <= at && kind !== "space" && kind !== "comment");
  return last ? { from: last.from, to: last.to } : null;
}
