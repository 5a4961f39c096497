// Rectangles by the hundred thousand: written pixel by pixel, which is quicker than asking a canvas for
// each of them.

import type { Rgb } from "../canvas/theme";

/** An image of opaque pixels, red in the lowest byte. */
export interface Pixels {
  data: Uint32Array;
  width: number;
  height: number;
}

/** A colour as a pixel. */
export function pixel([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Fills a rectangle from … up to, as far as it lies within the image. */
export function fill({ data, width, height }: Pixels, colour: number, left: number, right: number, top: number, bottom: number): void {
  const [from, to] = [Math.max(left, 0), Math.min(right, width)];
  if (from >= to) return;
  for (let y = Math.max(top, 0); y < Math.min(bottom, height); y++) data.fill(colour, y * width + from, y * width + to);
}
