// Functions that draw line charts.

import { across, ticks, type Axis } from "../canvas/axis";
import { font } from "../canvas/surface";
import { colour, css, rgb } from "../canvas/theme";
import { measured, moment, short } from "../format";
import { extent, longestStep, valueSteps, type ChartSeries } from "./chart";

/** Content of a line chart. */
export interface LinesPicture {
  axis: Axis;
  /** Unit of the values on the axis. */
  unit: string;
  x: number[];
  series: ChartSeries[];
  shown: boolean[];
  colours: string[];
  /** Index of the highlighted value in `x`; -1 if none is highlighted. */
  at: number;
}

const [TOP, BELOW] = [8, 22];

export function paintLines(ctx: CanvasRenderingContext2D, width: number, height: number, picture: LinesPicture): void {
  const { axis, x, series, shown, colours, at } = picture;
  const bottom = height - BELOW;
  const [low, high] = extent(series, shown);
  const heightOf = (value: number) => bottom - ((value - low) / (high - low)) * (bottom - TOP);
  ctx.font = font(ctx.canvas, 11);
  ctx.textBaseline = "middle";
  const unit = series.find((_, place) => shown[place])?.unit ?? "";
  for (const value of valueSteps([low, high], (bottom - TOP) / 36)) {
    const y = Math.round(heightOf(value));
    ctx.fillStyle = colour("var(--line)");
    ctx.fillRect(axis.from, y, axis.to - axis.from, 1);
    ctx.fillStyle = colour("var(--muted)");
    ctx.textAlign = "right";
    ctx.fillText(unit === "" ? short(value) : asUnit(value, unit, high - low), axis.from - 6, y);
  }
  ctx.textAlign = "center";
  const below = ticks(axis.range, (axis.to - axis.from) / 100);
  for (const tick of below.at) {
    const left = across(axis, tick);
    const text = asUnit(tick, picture.unit, below.step * 10);
    const half = ctx.measureText(text).width / 2;
    ctx.fillStyle = colour("var(--line)");
    ctx.fillRect(left - 0.5, bottom, 1, 4);
    ctx.fillStyle = colour("var(--muted)");
    if (left + half <= width) ctx.fillText(text, left, bottom + 13);
  }
  ctx.textAlign = "left";
  const step = longestStep(x);
  const follows = (at: number) => x[at] - x[at - 1] <= step;
  series.forEach(({ values }, place) => {
    if (!shown[place]) return;
    ctx.strokeStyle = ctx.fillStyle = colour(colours[place]);
    ctx.lineWidth = 1.5;
    ctx.lineJoin = "round";
    ctx.beginPath();
    let drawing = false;
    values.forEach((value, at) => {
      // Lines have gaps at unknown values and missing rows.
      if (!follows(at)) drawing = false;
      if (value === null) {
        drawing = false;
        return;
      }
      const [left, y] = [across(axis, x[at]), heightOf(value)];
      const isAlone = !drawing && ((values[at + 1] ?? null) === null || !follows(at + 1));
      if (isAlone) ctx.fillRect(left - 1.5, y - 1.5, 3, 3);
      if (drawing) ctx.lineTo(left, y);
      else ctx.moveTo(left, y);
      drawing = true;
    });
    ctx.stroke();
    const value = values[at] ?? null;
    if (at >= 0 && value !== null) {
      ctx.beginPath();
      ctx.arc(across(axis, x[at]), heightOf(value), 3.5, 0, 7);
      ctx.fill();
    }
  });
  if (at >= 0) {
    ctx.fillStyle = css(rgb("var(--fg)"), 0.4);
    ctx.fillRect(across(axis, x[at]) - 0.5, TOP, 1, bottom - TOP);
  }
}

/** Formats a value with its unit. Times have as many decimals as the visible `span` needs. */
export function asUnit(value: number, unit: string, span: number): string {
  return unit === "moment" ? moment(value, Math.max(span / 10, 1)) : measured(value, unit);
}
