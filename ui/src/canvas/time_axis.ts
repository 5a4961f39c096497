// Functions that draw the time axis and the selected time range of graphs.

import { moment } from "../format";
import type { Range } from "../api/types";
import type { Mark } from "../view/marks";
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

/** Maximum length of a shaded finding, as a share of the visible time. A longer one would shade nearly everything. */
const MAX_SHADED = 0.9;

/**
 * Shades the time ranges of findings, each with its number at the top. `ratio` is the number of pixels of the canvas
 * per CSS pixel.
 */
export function shadeFindings(
  ctx: CanvasRenderingContext2D,
  axis: Axis,
  marks: readonly Mark[],
  [top, bottom]: [number, number],
  ratio = 1,
): void {
  const whole = axis.range[1] - axis.range[0];
  ctx.save();
  ctx.font = font(ctx.canvas, 10 * ratio);
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  /** Places of the numbers, which must not overlap. */
  const numbers: number[] = [];
  for (const { kind, range, severity, finding } of marks) {
    if (kind !== "finding" || severity === "information" || range[1] - range[0] > MAX_SHADED * whole) continue;
    const [from, to] = [Math.max(across(axis, range[0]), axis.from), Math.min(across(axis, range[1]), axis.to)];
    if (to < axis.from || from > axis.to) continue;
    const color = rgb(`var(--${severity})`);
    ctx.fillStyle = css(color, 0.07);
    ctx.fillRect(from, top, to - from, bottom - top);
    ctx.fillStyle = css(color, 0.85);
    ctx.fillRect(from, top, Math.max(to - from, ratio), 2 * ratio);
    if (finding === undefined || numbers.some((other) => Math.abs(other - from) < 14 * ratio)) continue;
    numbers.push(from);
    ctx.fillText(String(finding + 1), from + ratio, top + 3 * ratio);
  }
  ctx.restore();
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
