// Colours for counts in a heat map.

import { mixed, type Rgb } from "../canvas/theme";

/**
 * Strength of the count 1, between 0 and 1. The longest waits are often single values, which must be
 * visible.
 */
export const MIN_STRENGTH = 0.42;

/**
 * Returns the strength of a count on a logarithmic scale. It is 0 for no values, and 1 for the largest
 * count.
 */
export function strength(count: number, most: number): number {
  if (count <= 0) return 0;
  return most <= 1 ? 1 : MIN_STRENGTH + (1 - MIN_STRENGTH) * (Math.log(count) / Math.log(most));
}

/** Number of colours. */
const STEPS = 256;

/**
 * Returns the colours for increasing strength. They change from the background to the accent colour, and
 * then to the text colour.
 */
export function ramp(ground: Rgb, accent: Rgb, ink: Rgb): Rgb[] {
  return Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1);
    return share < 0.65 ? mixed(ground, accent, share / 0.65) : mixed(accent, ink, ((share - 0.65) / 0.35) * 0.75);
  });
}

/** Returns the colour for a strength. */
export function rampColour(colours: Rgb[], strength: number): Rgb {
  return colours[Math.round(Math.min(Math.max(strength, 0), 1) * (colours.length - 1))];
}

/** Returns the largest count of all cells. */
export function most(counts: number[][]): number {
  let most = 0;
  for (const slice of counts) for (const count of slice) if (count > most) most = count;
  return most;
}
