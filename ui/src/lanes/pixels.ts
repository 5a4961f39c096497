// Image that consists of rectangles. Writing its pixels is faster than drawing hundreds of thousands of
// rectangles on a canvas.

import type { Rgb } from "../canvas/theme";

/** Image of opaque pixels. The lowest byte of a pixel is red. */
export interface Pixels {
  data: Uint32Array;
  width: number;
  height: number;
}

/** Converts a colour to a pixel. */
export function pixel([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Fills the part of a rectangle that is within the image. */
export function fill(
  { data, width, height }: Pixels,
  colour: number,
  left: number,
  right: number,
  top: number,
  bottom: number,
): void {
  const [from, to] = [Math.max(left, 0), Math.min(right, width)];
  if (from >= to) return;
  for (let y = Math.max(top, 0); y < Math.min(bottom, height); y++) data.fill(colour, y * width + from, y * width + to);
}
