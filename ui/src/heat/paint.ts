// Functions that draw heat maps.

import { across, type Axis } from "../canvas/axis";
import { font } from "../canvas/surface";
import { shadeFindings, timeAxis } from "../canvas/time_axis";
import { colour, css, rgb } from "../canvas/theme";
import { measured } from "../format";
import type { HeatAnswer } from "../api/types";
import type { Chosen, Line } from "./chosen";
import type { Mark } from "../view/marks";
import { most, ramp, rampColour, strength } from "./ramp";
import { classHeight, heightOf, valueTicks, type ValueAxis } from "./value_axis";

/** Cell of the heat map: the index of its time bucket, and the index of its class of values. */
export interface Cell {
  slice: number;
  row: number;
}

/** Content of a heat map. */
export interface HeatPicture {
  answer: HeatAnswer;
  axis: Axis;
  values: ValueAxis;
  lines: Line[];
  marks: Mark[];
  chosen: Chosen | null;
  cell: Cell | null;
  cursor: number | null;
}

/** Image with one pixel for each cell. It is cached until the answer or the theme changes. */
export class Cells {
  #answer: HeatAnswer | null = null;
  #theme = "";
  #image: HTMLCanvasElement | null = null;

  image(answer: HeatAnswer): HTMLCanvasElement | null {
    const theme = ["--panel", "--accent", "--fg"].map((name) => colour(`var(${name})`));
    if (this.#answer !== answer || this.#theme !== theme.join()) {
      this.#answer = answer;
      this.#theme = theme.join();
      this.#image = imageOf(answer);
    }
    return this.#image;
  }
}

function imageOf(answer: HeatAnswer): HTMLCanvasElement | null {
  const rows = answer.bounds.length - 1;
  if (answer.buckets < 1 || rows < 1) return null;
  const image = document.createElement("canvas");
  image.width = answer.buckets;
  image.height = rows;
  const ctx = image.getContext("2d");
  if (!ctx) return null;
  const pixels = ctx.createImageData(answer.buckets, rows);
  const colours = ramp(rgb("var(--panel)"), rgb("var(--accent)"), rgb("var(--fg)"));
  const top = most(answer.counts);
  answer.counts.forEach((counts, slice) => {
    counts.forEach((count, row) => {
      if (count <= 0) return;
      const at = ((rows - 1 - row) * answer.buckets + slice) * 4;
      pixels.data.set([...rampColour(colours, strength(count, top)), 255], at);
    });
  });
  ctx.putImageData(pixels, 0, 0);
  return image;
}

export function paintHeat(ctx: CanvasRenderingContext2D, width: number, picture: HeatPicture, cells: Cells): void {
  const { answer, axis, values } = picture;
  ctx.textBaseline = "middle";
  grid(ctx, picture);
  ctx.save();
  ctx.beginPath();
  ctx.rect(axis.from, values.top, axis.to - axis.from, values.bottom - values.top);
  ctx.clip();
  const image = cells.image(answer);
  if (image) {
    const left = across(axis, answer.start_ns);
    const right = across(axis, answer.start_ns + answer.bucket_ns * answer.buckets);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, left, values.top, right - left, values.bottom - values.top);
  }
  shadeFindings(ctx, axis, picture.marks, [values.top, values.bottom]);
  marks(ctx, picture);
  ctx.restore();
  limits(ctx, picture);
  timeAxis(ctx, axis, values.bottom, width);
}

function grid(ctx: CanvasRenderingContext2D, { answer, axis, values }: HeatPicture): void {
  ctx.font = font(ctx.canvas, 11);
  ctx.textAlign = "right";
  for (const { value, y } of valueTicks(values, 16)) {
    ctx.fillStyle = colour("var(--line)");
    ctx.fillRect(axis.from, y - 0.5, axis.to - axis.from, 1);
    ctx.fillStyle = colour("var(--muted)");
    if (y > 6) ctx.fillText(measured(value, answer.unit), axis.from - 6, y);
  }
  ctx.textAlign = "left";
}

function marks(ctx: CanvasRenderingContext2D, { answer, axis, values, chosen, cell, cursor }: HeatPicture): void {
  if (chosen) {
    const [left, right] = [across(axis, chosen.range[0]), across(axis, chosen.range[1])];
    const bottom = heightOf(values, chosen.from - 1) ?? values.bottom;
    const top = heightOf(values, chosen.to - 1) ?? values.top;
    ctx.fillStyle = css(rgb("var(--accent)"), 0.14);
    ctx.fillRect(left, top, right - left, bottom - top);
    ctx.strokeStyle = colour("var(--accent)");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(left, top, right - left, bottom - top);
  }
  if (cell) {
    const high = classHeight(values);
    const left = across(axis, answer.start_ns + cell.slice * answer.bucket_ns);
    const right = across(axis, answer.start_ns + (cell.slice + 1) * answer.bucket_ns);
    ctx.strokeStyle = colour("var(--fg)");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(left - 0.5, values.bottom - (cell.row + 1) * high - 0.5, Math.max(right - left, 2) + 1, high + 1);
  }
  if (cursor !== null) {
    ctx.fillStyle = css(rgb("var(--fg)"), 0.5);
    ctx.fillRect(across(axis, cursor) - 0.5, values.top, 1, values.bottom - values.top);
  }
}

/** Draws horizontal lines at limits, with their labels. */
function limits(ctx: CanvasRenderingContext2D, { axis, values, lines }: HeatPicture): void {
  ctx.font = font(ctx.canvas, 11);
  ctx.textAlign = "right";
  for (const { at, label } of lines) {
    const y = heightOf(values, at);
    if (y === null) continue;
    ctx.strokeStyle = colour("var(--problem)");
    ctx.lineWidth = 1;
    ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.moveTo(axis.from, y);
    ctx.lineTo(axis.to, y);
    ctx.stroke();
    ctx.setLineDash([]);
    const wide = ctx.measureText(label).width + 8;
    ctx.fillStyle = colour("var(--panel)");
    ctx.fillRect(axis.to - wide, y - 15, wide, 14);
    ctx.fillStyle = colour("var(--problem)");
    ctx.fillText(label, axis.to - 4, y - 7.5);
  }
  ctx.textAlign = "left";
}
