// Draws lanes: for each CPU a strip of interrupts and, below it, what ran.

import type { Range } from "../api/types";
import { across, type Axis } from "../canvas/axis";
import { fitting, font } from "../canvas/surface";
import { paintSelection, timeAxis } from "../canvas/time_axis";
import { colour, css, inkOn, mixed, rgb } from "../canvas/theme";
import { paletteColor } from "../colour";
import { label, type CpuLane, type LanesAnswer, type Wake } from "./answer";
import type { Hit } from "./hit";
import type { LaneLayout } from "./layout";
import { firstAfter } from "../canvas/order";
import { wakesToDraw } from "./wakes";

/** All that is to be seen. */
export interface LanesPicture {
  answer: LanesAnswer;
  layout: LaneLayout;
  axis: Axis;
  selection: Range | null;
  /** The one process that is not dimmed, by its label. */
  isolated: string | null;
  hit: Hit | null;
  /** The wake to the run that is hit. */
  wake: Wake | null;
  cursor: number | null;
}

/** Shorter names than these pixels are not worth their place. */
const NAMED_FROM = 36;

export function paintLanes(ctx: CanvasRenderingContext2D, width: number, picture: LanesPicture): void {
  const { answer, layout, axis } = picture;
  const fills = fillsOf(picture);
  ctx.font = font(ctx.canvas, Math.min(layout.runs - 3, 11));
  ctx.textBaseline = "middle";
  ctx.save();
  ctx.beginPath();
  ctx.rect(axis.from, 0, axis.to - axis.from, layout.lanes);
  ctx.clip();
  answer.cpus.forEach((cpu, lane) => {
    const top = lane * layout.pitch;
    runs(ctx, picture, cpu, top + layout.strip, fills);
    interrupts(ctx, picture, cpu, top);
  });
  arrows(ctx, picture);
  marks(ctx, picture);
  ctx.restore();
  names(ctx, picture);
  timeAxis(ctx, picture.axis, layout.lanes, width);
}

interface Fill {
  fill: string;
  ink: string;
  name: string;
}

function fillsOf({ answer, isolated }: LanesPicture): (process: number | null) => Fill {
  const made = new Map<number | null, Fill>();
  const panel = rgb("var(--panel)");
  return (process) => {
    let fill = made.get(process);
    if (!fill) {
      const name = label(answer.labels.process, process);
      const full = rgb(process === null ? "var(--muted)" : paletteColor(name));
      const dimmed = isolated !== null && isolated !== name;
      const shown = dimmed ? mixed(full, panel, 0.82) : full;
      fill = { fill: css(shown), ink: dimmed ? colour("var(--muted)") : inkOn(shown), name };
      made.set(process, fill);
    }
    return fill;
  };
}

function runs(ctx: CanvasRenderingContext2D, picture: LanesPicture, cpu: CpuLane, top: number, fills: (process: number | null) => Fill): void {
  const { answer, layout, axis, hit } = picture;
  const { start, end, process, busy } = cpu.runs;
  ctx.fillStyle = colour("var(--line)");
  ctx.fillRect(axis.from, top + layout.runs, axis.to - axis.from, 1);
  // A pixel has one colour: of short runs in the same half pixel only the first is drawn.
  let painted = -Infinity;
  for (let place = firstAfter(end, axis.range[0]); place < start.length && start[place] < axis.range[1]; place++) {
    const fill = fills(process[place]);
    const [left, right] = [across(axis, start[place]), across(axis, end[place])];
    if (right < painted) continue;
    const wide = Math.max(right - left, 0.5);
    painted = left + wide;
    const high = Math.max(layout.runs * busy[place], 1);
    if (ctx.fillStyle !== fill.fill) ctx.fillStyle = fill.fill;
    ctx.fillRect(left, top + layout.runs - high, wide, high);
    if (!answer.exact || wide < 3) continue;
    // A gap parts runs of one process.
    ctx.clearRect(right - 0.5, top, 0.5, layout.runs);
    const from = Math.max(left, axis.from) + 4;
    const room = Math.min(right, axis.to) - from - 3;
    if (room < NAMED_FROM) continue;
    ctx.fillStyle = fill.ink;
    ctx.fillText(fitting(ctx, fill.name, room), from, top + layout.runs / 2 + 0.5);
  }
  if (hit && !hit.interrupt && answer.cpus[hit.lane] === cpu) outline(ctx, axis, hit, top, layout.runs);
}

function interrupts(ctx: CanvasRenderingContext2D, picture: LanesPicture, cpu: CpuLane, top: number): void {
  const { answer, layout, axis, hit } = picture;
  const { start, end, kind, busy } = cpu.interrupts;
  let painted = -Infinity;
  for (let place = firstAfter(end, axis.range[0]); place < start.length && start[place] < axis.range[1]; place++) {
    const [left, right] = [across(axis, start[place]), across(axis, end[place])];
    if (right < painted) continue;
    const wide = Math.max(right - left, 0.75);
    painted = left + wide;
    const high = Math.max(layout.strip * busy[place], 1);
    ctx.fillStyle = colour(paletteColor(kind[place]));
    ctx.fillRect(left, top + layout.strip - high, wide, high);
  }
  if (hit?.interrupt && answer.cpus[hit.lane] === cpu) outline(ctx, axis, hit, top, layout.strip);
}

function outline(ctx: CanvasRenderingContext2D, axis: Axis, hit: Hit, top: number, height: number): void {
  const left = across(axis, hit.start_ns);
  ctx.strokeStyle = colour("var(--fg)");
  ctx.lineWidth = 1.5;
  ctx.strokeRect(left - 0.5, top + 0.5, Math.max(across(axis, hit.end_ns) - left, 1) + 1, height - 1);
}

/** Down or up from whoever made it ready, then along the time it was ready, to where it ran. */
function arrows(ctx: CanvasRenderingContext2D, picture: LanesPicture): void {
  const { answer, axis, wake } = picture;
  const { drawn } = wakesToDraw(answer, axis.range);
  const laneOf = new Map(answer.cpus.map(({ cpu }, lane) => [cpu, lane]));
  ctx.strokeStyle = ctx.fillStyle = css(rgb("var(--fg)"), 0.45);
  ctx.lineWidth = 1;
  for (const one of drawn) if (one !== wake) arrow(ctx, picture, one, laneOf);
  if (!wake) return;
  ctx.strokeStyle = ctx.fillStyle = colour("var(--fg)");
  ctx.lineWidth = 2;
  arrow(ctx, picture, wake, laneOf);
}

function arrow(ctx: CanvasRenderingContext2D, { axis, layout }: LanesPicture, wake: Wake, laneOf: Map<number, number>): void {
  const from = laneOf.get(wake.from_cpu);
  const to = laneOf.get(wake.to_cpu);
  if (to === undefined) return;
  const middle = (lane: number) => lane * layout.pitch + layout.strip + layout.runs / 2;
  const [left, right] = [across(axis, wake.at_ns), across(axis, wake.run_start_ns)];
  ctx.beginPath();
  if (from !== undefined && from !== to) {
    ctx.moveTo(left, middle(from));
    ctx.lineTo(left, middle(to));
  }
  ctx.moveTo(left, middle(to));
  ctx.lineTo(right, middle(to));
  ctx.stroke();
  if (from !== undefined) {
    ctx.beginPath();
    ctx.arc(left, middle(from), 2, 0, 7);
    ctx.fill();
  }
  ctx.beginPath();
  ctx.moveTo(right, middle(to));
  ctx.lineTo(right - 5, middle(to) - 3);
  ctx.lineTo(right - 5, middle(to) + 3);
  ctx.fill();
}

function marks(ctx: CanvasRenderingContext2D, { axis, layout, selection, cursor }: LanesPicture): void {
  if (selection) paintSelection(ctx, axis, selection, 0, layout.lanes);
  if (cursor !== null) {
    ctx.fillStyle = css(rgb("var(--fg)"), 0.5);
    ctx.fillRect(across(axis, cursor) - 0.5, 0, 1, layout.lanes);
  }
}

function names(ctx: CanvasRenderingContext2D, { answer, layout, axis }: LanesPicture): void {
  ctx.font = font(ctx.canvas, 11);
  ctx.fillStyle = colour("var(--muted)");
  ctx.textAlign = "right";
  answer.cpus.forEach(({ cpu }, lane) => {
    ctx.fillText(`CPU ${cpu}`, axis.from - 8, lane * layout.pitch + layout.strip + layout.runs / 2 + 0.5);
  });
  ctx.textAlign = "left";
}
