// Functions that draw flame graphs.

import type { Layer } from "../canvas/layer";
import { fitting, font } from "../canvas/surface";
import { colour, css, inkOn, mixed, rgb, type Rgb } from "../canvas/theme";
import { paletteColor } from "../colour";
import type { FlameAnswer } from "../api/types";
import { functionOf, moduleOf } from "./frames";
import { changed } from "./difference";
import type { FlameLayout, Part } from "./layout";

/** Height of a row, in pixels. */
export const ROW = 19;
/** Minimum width at which a call gets a label, in pixels. */
const MIN_LABEL_WIDTH = 26;

/** Colour of calls whose share is larger than in the other time range or trace. */
export const MORE = "light-dark(#c2382b, #e8655a)";
/** Colour of calls whose share is smaller than in the other time range or trace. */
export const LESS = "light-dark(#2166ac, #5b9bd9)";

/** Content of a flame graph. */
export interface FlamePicture {
  answer: FlameAnswer;
  layout: FlameLayout;
  /** Visible calls and the number of rows. */
  nodes: number[];
  rows: number;
  /** Visible part of the width. */
  part: Part;
  /** True if the outermost calls are at the top, false if they are at the bottom. */
  hanging: boolean;
  /** Scroll position, in pixels. */
  scrolled: number;
  /** For each frame, true if it matches the search; `null` without a search. */
  matching: boolean[] | null;
  /** Differences of the shares; `null` to draw one side in the colours of its modules. */
  differences: Float64Array | null;
  /**
   * Function that returns the side of a call: `this` or `other` if only this time range or trace has the call,
   * `null` if both have it. The function is `null` if nothing is compared.
   */
  only: ((node: number) => "this" | "other" | null) | null;
  greatest: number;
  /** Index of the highlighted call, or -1. */
  at: number;
}

/** Returns the vertical position of the top of a row in pixels, without scrolling. */
export function topOf(depth: number, rows: number, hanging: boolean): number {
  return (hanging ? depth : rows - 1 - depth) * ROW;
}

export function paintFlame(
  ctx: CanvasRenderingContext2D,
  width: number,
  height: number,
  picture: FlamePicture,
  layer: Layer,
): void {
  const { layout, nodes, part, rows, hanging, scrolled, at } = picture;
  const of = [layout, nodes, hanging, scrolled, picture.matching, picture.differences];
  layer.draw(ctx, { of, axis: { range: part, from: 0, to: width }, height, extent: part }, (ctx) =>
    calls(ctx, width, height, picture),
  );
  if (at < 0) return;
  const [from, wide] = placeOf(picture, at, width);
  ctx.strokeStyle = colour("var(--fg)");
  ctx.lineWidth = 2;
  ctx.strokeRect(from + 1, topOf(layout.depth[at], rows, hanging) - scrolled + 1, Math.max(wide - 2, 1), ROW - 3);
}

/** Returns the horizontal position and the width of a call, in pixels. */
function placeOf(
  { layout, part: [left, right] }: FlamePicture,
  node: number,
  width: number,
): [from: number, wide: number] {
  const across = width / Math.max(right - left, Number.MIN_VALUE);
  const from = Math.max((layout.from[node] - left) * across, 0);
  const to = Math.min((layout.to[node] - left) * across, width);
  return [from, Math.max(to - from - (to - from > 3 ? 1 : 0), 0.5)];
}

function calls(ctx: CanvasRenderingContext2D, width: number, height: number, picture: FlamePicture): void {
  const { answer, layout, rows, hanging, scrolled } = picture;
  const fills = new Map<string, Rgb>();
  const panel = rgb("var(--panel)");
  ctx.font = font(document.body, 11);
  ctx.textBaseline = "middle";
  for (const node of picture.nodes) {
    const top = topOf(layout.depth[node], rows, hanging) - scrolled;
    if (top + ROW < 0 || top > height) continue;
    const [from, wide] = placeOf(picture, node, width);
    const name = answer.frames[answer.nodes.frame[node]];
    const matches = picture.matching?.[answer.nodes.frame[node]];
    let fill = fillOf(picture, node, name, fills, panel);
    if (picture.matching && !matches) fill = mixed(fill, panel, 0.7);
    ctx.fillStyle = css(fill);
    ctx.fillRect(from, top, wide, ROW - 1);
    if (picture.differences) {
      const difference = picture.differences[node] / picture.greatest;
      if (Math.abs(difference) >= 0.02) hatch(ctx, difference > 0, from, top, wide);
      // If one side lacks a call, lines in both directions cross on the call.
      const only = picture.only?.(node);
      if (only) hatch(ctx, only === "other", from, top, wide);
      if (only) hatch(ctx, only === "this", from, top, wide);
    }
    if (matches) {
      ctx.fillStyle = colour("var(--gold)");
      ctx.fillRect(from, top + ROW - 4, wide, 3);
    }
    if (wide < MIN_LABEL_WIDTH) continue;
    ctx.fillStyle = picture.matching && !matches ? colour("var(--muted)") : inkOn(fill);
    ctx.fillText(textOf(ctx, picture, node, name, wide - 8), from + 4, top + ROW / 2);
  }
}

function fillOf(picture: FlamePicture, node: number, name: string, fills: Map<string, Rgb>, panel: Rgb): Rgb {
  if (picture.differences) {
    const difference = picture.differences[node] / (picture.greatest || 1);
    const strength = Math.sqrt(Math.abs(difference));
    return mixed(rgb("var(--idle)"), rgb(difference > 0 ? MORE : LESS), strength);
  }
  const module = moduleOf(name);
  let fill = fills.get(module);
  if (!fill) {
    fill = mixed(rgb(paletteColor(module)), panel, 0.45);
    fills.set(module, fill);
  }
  return fill;
}

/**
 * Draws lines over a call in addition to its colour. They rise for a larger share and fall for a smaller
 * share.
 */
function hatch(ctx: CanvasRenderingContext2D, rises: boolean, from: number, top: number, wide: number): void {
  if (wide < 6) return;
  const [rise, apart] = [ROW - 1, 9];
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, top, wide, rise);
  ctx.clip();
  ctx.strokeStyle = css(rgb("var(--panel)"), 0.28);
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let x = from - rise; x < from + wide; x += apart) {
    ctx.moveTo(x, rises ? top + rise : top);
    ctx.lineTo(x + rise, rises ? top : top + rise);
  }
  ctx.stroke();
  ctx.restore();
}

function textOf(
  ctx: CanvasRenderingContext2D,
  picture: FlamePicture,
  node: number,
  name: string,
  room: number,
): string {
  const change = picture.differences ? `${changed(picture.differences[node])}  ` : "";
  const whole = change + name;
  if (ctx.measureText(whole).width <= room) return whole;
  return fitting(ctx, change + functionOf(name), room);
}
