// A picture that is kept, and only moved while it is panned.

import type { Range } from "../api/types";
import { across, type Axis } from "./axis";

/** What a kept picture shows; another picture is needed once any of it changes. */
export interface Shown {
  /** What it is of: the same object as long as the picture is the same but for its range. */
  of: readonly unknown[];
  axis: Axis;
  height: number;
  /** All there is lies within. */
  extent: Range;
}

/** Paints on a canvas of its own, and copies that. */
export class Layer {
  #canvas: HTMLCanvasElement | null = null;
  #shown: Shown | null = null;
  #ratio = 0;

  /** Forgets the picture: its colours are others now. */
  forget(): void {
    this.#shown = null;
  }

  /** Draws the picture at its place, painting it anew only if what is kept does not do. */
  draw(ctx: CanvasRenderingContext2D, wanted: Shown, paint: (ctx: CanvasRenderingContext2D, axis: Axis) => void): void {
    const { axis, height } = wanted;
    const width = axis.to - axis.from;
    const ratio = ctx.getTransform().a;
    if (!this.#shown || ratio !== this.#ratio || !serves(this.#shown, wanted)) {
      const canvas = (this.#canvas ??= document.createElement("canvas"));
      canvas.width = Math.max(Math.round(width * ratio), 1);
      canvas.height = Math.max(Math.round(height * ratio), 1);
      const own = canvas.getContext("2d");
      if (!own) return;
      own.setTransform(ratio, 0, 0, ratio, -axis.from * ratio, 0);
      paint(own, axis);
      this.#shown = wanted;
      this.#ratio = ratio;
    }
    const left = across(axis, this.#shown.axis.range[0]);
    ctx.save();
    ctx.beginPath();
    ctx.rect(axis.from, 0, width, height);
    ctx.clip();
    // Whole pixels stay sharp.
    ctx.drawImage(this.#canvas!, Math.round(left * ratio) / ratio, 0, width, height);
    ctx.restore();
  }
}

/** Whether a kept picture shows what is wanted, be it that it is moved. */
export function serves(kept: Shown, wanted: Shown): boolean {
  const [from, to] = kept.axis.range;
  const [start, end] = wanted.axis.range;
  const same = kept.axis.from === wanted.axis.from && kept.axis.to === wanted.axis.to && kept.height === wanted.height;
  if (!same || !kept.of.every((part, place) => part === wanted.of[place])) return false;
  if (from === start && to === end) return true;
  const isMoved = Math.abs(to - from - (end - start)) <= (end - start) * 1e-6;
  // A moved picture lacks what was beyond its edges: that must be nothing.
  return isMoved && from <= wanted.extent[0] && wanted.extent[1] <= to;
}
