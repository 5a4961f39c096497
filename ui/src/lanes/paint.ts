// Functions that draw lanes. The lane of a CPU has a strip of interrupts, and the runs of threads below it.

import type { CpuLane, LanesAnswer, Range, Wake } from "../api/types";
import { across, type Axis } from "../canvas/axis";
import type { Layer } from "../canvas/layer";
import { firstAfter, upTo } from "../canvas/order";
import { fitting, font } from "../canvas/surface";
import { paintSelection, shadeFindings, timeAxis } from "../canvas/time_axis";
import { colour, css, inkOn, mixed, rgb } from "../canvas/theme";
import { paletteColor, valueColor } from "../colour";
import type { Mark } from "../view/marks";
import { label } from "./label";
import { bars, type Bar } from "./columns";
import { gapsOf } from "./gaps";
import type { Hit } from "./hit";
import type { LaneLayout } from "./layout";
import { fill, pixel, type Pixels } from "./pixels";
import { wakesToDraw } from "./wakes";

/** Content of the lanes. */
export interface LanesPicture {
  answer: LanesAnswer;
  layout: LaneLayout;
  axis: Axis;
  selection: Range | null;
  marks: Mark[];
  /** Label of the only process that is not dimmed; `null` to dim no process. */
  isolated: string | null;
  hit: Hit | null;
  /** Wake that led to the run under the pointer. */
  wake: Wake | null;
  cursor: number | null;
}

/** Minimum width at which a run gets a label, in pixels. */
const MIN_LABEL_WIDTH = 36;

export function paintLanes(ctx: CanvasRenderingContext2D, width: number, picture: LanesPicture, layer: Layer): void {
  const { answer, layout, axis, isolated } = picture;
  const shown = {
    of: [answer, layout.pitch, isolated],
    axis,
    height: layout.lanes,
    extent: [answer.start_ns, answer.end_ns] as Range,
  };
  layer.draw(ctx, shown, (ctx, axis) => paintRuns(ctx, { ...picture, axis }));
  ctx.save();
  ctx.beginPath();
  ctx.rect(axis.from, 0, axis.to - axis.from, layout.lanes);
  ctx.clip();
  paintGaps(ctx, picture);
  shadeFindings(ctx, axis, picture.marks, [0, layout.lanes]);
  arrows(ctx, picture);
  marks(ctx, picture);
  ctx.restore();
  names(ctx, picture);
  timeAxis(ctx, picture.axis, layout.lanes, width);
}

/** Draws the runs and interrupts. They are cached, because they do not change while the pointer moves. */
function paintRuns(ctx: CanvasRenderingContext2D, picture: LanesPicture): void {
  const { answer, layout } = picture;
  const { width, height } = ctx.canvas;
  const image = ctx.createImageData(width, height);
  const pixels = { data: new Uint32Array(image.data.buffer), width, height };
  const ratio = ctx.getTransform().a;
  const fills = fillsOf(picture);
  const kinds = new Map<string, number>();
  const ground = pixel(rgb("var(--line)"));
  answer.cpus.forEach((cpu, lane) => {
    const top = lane * layout.pitch;
    const below = Math.round((top + layout.strip + layout.runs) * ratio);
    fill(pixels, ground, 0, width, below, below + Math.max(Math.round(ratio), 1));
    runs(pixels, picture, cpu, top + layout.strip, ratio, fills);
    interrupts(pixels, picture, cpu, top, ratio, kinds);
  });
  ctx.putImageData(image, 0, 0);
  if (answer.exact && layout.runs >= 12) runNames(ctx, picture, fills);
}

interface Fill {
  fill: number;
  ink: string;
  name: string;
}

type Fills = (process: number | null) => Fill;

function fillsOf({ answer, isolated }: LanesPicture): Fills {
  const made = new Map<number | null, Fill>();
  const panel = rgb("var(--panel)");
  return (process) => {
    let fill = made.get(process);
    if (!fill) {
      const name = label(answer.labels.process, process);
      const full = rgb(process === null ? "var(--unknown)" : valueColor("process", name));
      const dimmed = isolated !== null && isolated !== name;
      const shown = dimmed ? mixed(full, panel, 0.82) : full;
      fill = { fill: pixel(shown), ink: dimmed ? colour("var(--muted)") : inkOn(shown), name };
      made.set(process, fill);
    }
    return fill;
  };
}

/** Calls `draw` for the bars of all visible spans. Their positions are columns of the image. */
function visibleBars(
  axis: Axis,
  ratio: number,
  { start, end, busy }: { start: number[]; end: number[]; busy: number[] },
  draw: (bar: Bar) => void,
): void {
  const first = firstAfter(end, axis.range[0]);
  const column = (time: number) => (across(axis, time) - axis.from) * ratio;
  const spans = {
    length: upTo(start, axis.range[1]) - first,
    left: (place: number) => column(start[first + place]),
    right: (place: number) => column(end[first + place]),
    busy: (place: number) => busy[first + place],
  };
  bars(spans, (bar) => draw({ ...bar, place: first + bar.place }));
}

function runs(
  pixels: Pixels,
  { answer, layout, axis }: LanesPicture,
  cpu: CpuLane,
  top: number,
  ratio: number,
  fills: Fills,
): void {
  const bottom = Math.round((top + layout.runs) * ratio);
  // There is a gap between consecutive runs that are wide enough.
  const gap = answer.exact ? Math.max(Math.round(ratio / 2), 1) : 0;
  visibleBars(axis, ratio, cpu.runs, ({ left, right, share, place }) => {
    const high = Math.max(Math.round(layout.runs * share * ratio), Math.round(ratio));
    const colour = fills(cpu.runs.process[place]).fill;
    fill(pixels, colour, left, right - left > 4 * gap ? right - gap : right, bottom - high, bottom);
  });
}

/** Number of shades for interrupts that are shorter than a pixel column. */
const SHADES = 8;

function interrupts(
  pixels: Pixels,
  { layout, axis }: LanesPicture,
  cpu: CpuLane,
  top: number,
  ratio: number,
  kinds: Map<string, number>,
): void {
  const bottom = Math.round((top + layout.strip) * ratio);
  const { kind } = cpu.interrupts;
  const ground = rgb("var(--panel)");
  visibleBars(axis, ratio, cpu.interrupts, ({ left, right, share, place }) => {
    const exact = layout.strip * share * ratio;
    // Interrupts that took less time have a paler colour. A solid line would look like permanent interrupts.
    const strength = Math.max(Math.ceil(Math.min(exact / ratio, 1) * SHADES), 1);
    const name = `${kind[place]} ${strength}`;
    let colour = kinds.get(name);
    if (colour === undefined)
      kinds.set(name, (colour = pixel(mixed(ground, rgb(paletteColor(kind[place])), strength / SHADES))));
    fill(pixels, colour, left, right, bottom - Math.max(Math.round(exact), Math.round(ratio)), bottom);
  });
}

function runNames(ctx: CanvasRenderingContext2D, { answer, layout, axis }: LanesPicture, fills: Fills): void {
  ctx.font = font(document.body, Math.min(layout.runs - 3, 11));
  ctx.textBaseline = "middle";
  answer.cpus.forEach(({ runs: { start, end, process } }, lane) => {
    const middle = lane * layout.pitch + layout.strip + layout.runs / 2 + 0.5;
    for (let place = firstAfter(end, axis.range[0]); place < start.length && start[place] < axis.range[1]; place++) {
      const from = Math.max(across(axis, start[place]), axis.from) + 4;
      const room = Math.min(across(axis, end[place]), axis.to) - from - 3;
      if (room < MIN_LABEL_WIDTH) continue;
      const { ink, name } = fills(process[place]);
      ctx.fillStyle = ink;
      ctx.fillText(fitting(ctx, name, room), from, middle);
    }
  });
}

function outline(ctx: CanvasRenderingContext2D, axis: Axis, hit: Hit, top: number, height: number): void {
  const left = across(axis, hit.start_ns);
  ctx.strokeStyle = colour("var(--fg)");
  ctx.lineWidth = 1.5;
  ctx.strokeRect(left - 0.5, top + 0.5, Math.max(across(axis, hit.end_ns) - left, 1) + 1, height - 1);
}

/** Draws the times without data. The CPU may have been busy at these times. */
function paintGaps(ctx: CanvasRenderingContext2D, { answer, axis, layout }: LanesPicture): void {
  ctx.fillStyle = css(rgb("var(--muted)"), 0.3);
  answer.cpus.forEach((lane, place) => {
    for (const [from, to] of gapsOf(lane, axis.range)) {
      const left = across(axis, from);
      ctx.fillRect(left, place * layout.pitch, Math.max(across(axis, to) - left, 1), layout.pitch - 1);
    }
  });
}

/**
 * Draws arrows for wakes. An arrow starts at the CPU of the readying thread, follows the ready time, and
 * ends at the start of the run.
 */
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

function arrow(
  ctx: CanvasRenderingContext2D,
  { axis, layout }: LanesPicture,
  wake: Wake,
  laneOf: Map<number, number>,
): void {
  const from = laneOf.get(wake.from_cpu);
  const to = laneOf.get(wake.to_cpu);
  if (to === undefined) return;
  // Draw the arrow below the labels of the runs.
  const level = (lane: number) => lane * layout.pitch + layout.strip + layout.runs - Math.min(4, layout.runs / 3);
  const [left, right] = [across(axis, wake.at_ns), across(axis, wake.run_start_ns)];
  ctx.beginPath();
  if (from !== undefined && from !== to) {
    ctx.moveTo(left, level(from));
    ctx.lineTo(left, level(to));
  }
  ctx.moveTo(left, level(to));
  ctx.lineTo(right, level(to));
  ctx.stroke();
  if (from !== undefined) {
    ctx.beginPath();
    ctx.arc(left, level(from), 2, 0, 7);
    ctx.fill();
  }
  ctx.beginPath();
  ctx.moveTo(right, level(to));
  ctx.lineTo(right - 5, level(to) - 3);
  ctx.lineTo(right - 5, level(to) + 3);
  ctx.fill();
}

function marks(ctx: CanvasRenderingContext2D, { axis, layout, selection, cursor, hit }: LanesPicture): void {
  if (hit) {
    const top = hit.lane * layout.pitch;
    if (hit.interrupt) outline(ctx, axis, hit, top, layout.strip);
    else outline(ctx, axis, hit, top + layout.strip, layout.runs);
  }
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
  // If lanes are thin, only every second or third lane (or even fewer) has a label, so that labels do not overlap.
  const every = Math.ceil(12 / layout.pitch);
  answer.cpus.forEach(({ cpu }, lane) => {
    if (lane % every === 0)
      ctx.fillText(`CPU ${cpu}`, axis.from - 8, lane * layout.pitch + layout.strip + layout.runs / 2 + 0.5);
  });
  ctx.textAlign = "left";
}
