// Functions that draw the lanes of a timeline.

import type { Range } from "../api/types";
import { across, type Axis } from "../canvas/axis";
import { paintSelection, shadeFindings } from "../canvas/time_axis";
import { colour, css, rgb } from "../canvas/theme";
import type { Mark } from "../view/marks";
import type { Row } from "./rows";

/** Content of the lanes. */
export interface RowsPicture {
  rows: Row[];
  start_ns: number;
  bucket_ns: number;
  axis: Axis;
  /** Height of a row, with the gap below it. */
  pitch: number;
  selection: Range | null;
  cursor: number | null;
  marks: Mark[];
  /** Row and bucket under the pointer. */
  at: { row: number; bucket: number } | null;
  /** Ids of highlighted rows. If there are any, all other rows are dimmed. */
  highlighted: ReadonlySet<Row["id"]>;
  /** End of the recorded data. */
  until: number | null;
}

export function paintRows(ctx: CanvasRenderingContext2D, picture: RowsPicture): void {
  const { rows, axis, pitch, start_ns, bucket_ns, highlighted } = picture;
  const inner = pitch - 3;
  ctx.save();
  ctx.beginPath();
  ctx.rect(axis.from, 0, axis.to - axis.from, rows.length * pitch);
  ctx.clip();
  shades(ctx, picture);
  rows.forEach(({ id, parts }, place) => {
    const base = place * pitch + inner;
    ctx.globalAlpha = highlighted.size > 0 && !highlighted.has(id) ? 0.3 : 1;
    const buckets = parts[0]?.shares.length ?? 0;
    const level = new Float64Array(buckets);
    for (const { color, shares } of parts) {
      ctx.fillStyle = colour(color);
      let bucket = 0;
      while (bucket < buckets) {
        const share = Math.min(shares[bucket] ?? 0, 1 - level[bucket]);
        let next = bucket + 1;
        if (share <= 0) {
          bucket = next;
          continue;
        }
        // Neighbouring buckets with the same height are one rectangle without gaps.
        while (
          next < buckets &&
          level[next] === level[bucket] &&
          (shares[next] ?? 0) > 0 &&
          Math.abs(Math.min(shares[next] ?? 0, 1 - level[next]) - share) < 1e-3
        )
          next += 1;
        const left = across(axis, start_ns + bucket * bucket_ns);
        const right = across(axis, start_ns + next * bucket_ns);
        const high = Math.max(share * inner, 1);
        ctx.fillRect(left, base - level[bucket] * inner - high, Math.max(right - left, 1), high);
        for (let one = bucket; one < next; one++) level[one] += share;
        bucket = next;
      }
    }
    ctx.globalAlpha = 1;
    ctx.fillStyle = colour("var(--line)");
    ctx.fillRect(axis.from, place * pitch + pitch - 1, axis.to - axis.from, 1);
  });
  front(ctx, picture);
  ctx.restore();
}

/** Draws the time ranges of findings and the time after the recorded data, behind the rows. */
function shades(ctx: CanvasRenderingContext2D, { marks, axis, rows, pitch, until }: RowsPicture): void {
  const high = rows.length * pitch;
  shadeFindings(ctx, axis, marks, [0, high]);
  if (until !== null && until < axis.range[1]) {
    ctx.fillStyle = css(rgb("var(--muted)"), 0.16);
    ctx.fillRect(across(axis, until), 0, axis.to - across(axis, until), high);
  }
}

/** Draws the selection, the cursor and the row under the pointer, in front of the rows. */
function front(ctx: CanvasRenderingContext2D, picture: RowsPicture): void {
  const { axis, rows, pitch, selection, cursor, at, marks, start_ns, bucket_ns } = picture;
  const high = rows.length * pitch;
  for (const { kind, range } of marks) {
    if (kind !== "input") continue;
    ctx.fillStyle = css(rgb("var(--fg)"), 0.35);
    ctx.fillRect(across(axis, range[0]), 0, 1, 5);
  }
  if (selection) paintSelection(ctx, axis, selection, 0, high);
  if (cursor !== null) {
    ctx.fillStyle = css(rgb("var(--fg)"), 0.5);
    ctx.fillRect(across(axis, cursor) - 0.5, 0, 1, high);
  }
  if (at) {
    const left = across(axis, start_ns + at.bucket * bucket_ns);
    ctx.strokeStyle = colour("var(--fg)");
    const wide = Math.max(across(axis, start_ns + (at.bucket + 1) * bucket_ns) - left, 2);
    ctx.strokeRect(left - 0.5, at.row * pitch + 0.5, wide + 1, pitch - 3);
  }
}
