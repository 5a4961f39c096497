// Functions that draw the time axis and the selected time range of graphs.

import { moment } from "../format";
import type { Range } from "../api/types";
import { across, ticks, type Axis } from "./axis";
import { font } from "./surface";
import { colour, css, rgb } from "./theme";

/** Height of the time axis, in pixels. */
export const AXIS_HEIGHT = 20;

/** Highlights the selected time range and draws lines at its start and end. */
export function paintSelection(
  ctx: CanvasRenderingContext2D,
  axis: Axis,
  [from, to]: Range,
  top: number,
  height: number,
): void {
  const [left, right] = [across(axis, from), across(axis, to)];
  const accent = rgb("var(--accent)");
  ctx.fillStyle = css(accent, 0.14);
  ctx.fillRect(left, top, right - left, height);
  ctx.fillStyle = css(accent);
  ctx.fillRect(left - 0.5, top, 1, height);
  ctx.fillRect(right - 0.5, top, 1, height);
}

/** Draws ticks and their times below a graph. */
export function timeAxis(ctx: CanvasRenderingContext2D, axis: Axis, top: number, width: number): void {
  const { step, at } = ticks(axis.range, (axis.to - axis.from) / 90);
  ctx.font = font(ctx.canvas, 11);
  ctx.textBaseline = "middle";
  ctx.textAlign = "center";
  for (const tick of at) {
    const x = across(axis, tick);
    ctx.fillStyle = colour("var(--line)");
    ctx.fillRect(x - 0.5, top, 1, 4);
    const text = moment(tick, step);
    const half = ctx.measureText(text).width / 2;
    ctx.fillStyle = colour("var(--muted)");
    if (x - half >= 0 && x + half <= width) ctx.fillText(text, x, top + AXIS_HEIGHT / 2 + 2);
  }
  ctx.textAlign = "left";
}
