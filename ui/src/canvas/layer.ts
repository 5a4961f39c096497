// Cached image of a graph. While the user pans, the image is only moved.

import type { Range } from "../api/types";
import { across, type Axis } from "./axis";

/** Content of a cached image. If it changes, the image is painted again. */
export interface Shown {
  /** Values from which the image is painted, except its time range. They are compared by identity. */
  of: readonly unknown[];
  axis: Axis;
  height: number;
  /** Time range that contains all data. */
  extent: Range;
}

/** Cache of an image on a separate canvas. */
export class Layer {
  #canvas: HTMLCanvasElement | null = null;
  #shown: Shown | null = null;
  #ratio = 0;

  /** Removes the image from the cache, for example after a change of colours. */
  forget(): void {
    this.#shown = null;
  }

  /** Draws the image at its position. If the cached image cannot be used, it is painted first. */
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
    // Round to whole pixels to keep the image sharp.
    ctx.drawImage(this.#canvas!, Math.round(left * ratio) / ratio, 0, width, height);
    ctx.restore();
  }
}

/** Returns true if a cached image can be drawn for the wanted content. The image may have to be moved. */
export function serves(kept: Shown, wanted: Shown): boolean {
  const [from, to] = kept.axis.range;
  const [start, end] = wanted.axis.range;
  const same = kept.axis.from === wanted.axis.from && kept.axis.to === wanted.axis.to && kept.height === wanted.height;
  if (!same || !kept.of.every((part, place) => part === wanted.of[place])) return false;
  if (from === start && to === end) return true;
  const isMoved = Math.abs(to - from - (end - start)) <= (end - start) * 1e-6;
  // The moved image contains only its old time range, so all data must be within this range.
  return isMoved && from <= wanted.extent[0] && wanted.extent[1] <= to;
}
