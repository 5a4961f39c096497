// Brackets above the graphs: time ranges of findings and notes, with their texts.

import type { Range, Severity } from "../api/types";

/** Time range with a text. */
export interface Bracket {
  /** Key of the bracket among all others, such as `finding 0` or `note 2`. */
  key: string;
  range: Range;
  text: string;
  /** Severity of a finding; `null` for notes. */
  severity: Severity | null;
}

/** Bracket at its place: its row, and its left edge and width in pixels. */
export interface Placed {
  bracket: Bracket;
  row: number;
  left: number;
  width: number;
}

/** Minimum width of a bracket, in pixels. The number of a finding fits into this width. */
const NARROWEST = 16;
/** Width that a text needs to be readable, in pixels. Texts of short brackets may reach over their end. */
const READABLE = 150;

/**
 * Places the brackets that are within the time range in rows, so that no texts overlap. Returns the placed brackets,
 * and the number of brackets for which there is no room. The first brackets get the first rows.
 */
export function place(
  brackets: readonly Bracket[],
  [from, to]: Range,
  pixels: number,
  rows: number,
): { placed: Placed[]; left: number } {
  const ends: number[][] = Array.from({ length: rows }, () => []);
  const starts: number[][] = Array.from({ length: rows }, () => []);
  const across = (time: number) => ((time - from) / Math.max(to - from, 1)) * pixels;
  const placed: Placed[] = [];
  let left = 0;
  for (const bracket of brackets) {
    const [start, end] = bracket.range;
    if (end < from || start > to) continue;
    const begin = Math.min(Math.max(across(start), 0), Math.max(pixels - NARROWEST, 0));
    const finish = Math.min(across(end), pixels);
    const isFree = (row: number, width: number) =>
      starts[row].every((other, at) => begin >= ends[row][at] || begin + width <= other);
    const least = Math.max(finish - begin, NARROWEST);
    const wished = Math.min(Math.max(least, READABLE), pixels - begin);
    // The text is placed in the first row in which it is readable. If there is no such row, the first row in which the
    // number fits is used.
    const widths = [Math.max(wished, least), least];
    const fitting = widths.flatMap((width) =>
      Array.from({ length: rows }, (_, row) => ({ row, width })).filter(({ row, width }) => isFree(row, width)),
    );
    const [best] = fitting;
    if (best === undefined) {
      left += 1;
      continue;
    }
    starts[best.row].push(begin);
    ends[best.row].push(begin + best.width + 2);
    placed.push({ bracket, row: best.row, left: begin, width: best.width });
  }
  return { placed, left };
}
