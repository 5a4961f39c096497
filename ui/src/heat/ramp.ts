// How strong the colour of a count is.

import { mixed, type Rgb } from "../canvas/theme";

/** Of a single one: the longest waits are single ones, and must not be lost on the ground. */
export const LEAST = 0.42;

/** From 0 for none to 1 for the most, by the logarithm. */
export function strength(count: number, most: number): number {
  if (count <= 0) return 0;
  return most <= 1 ? 1 : LEAST + (1 - LEAST) * (Math.log(count) / Math.log(most));
}

/** So many colours from the weakest to the strongest. */
const STEPS = 256;

/** Colours of strengths: from the ground through the accent to the ink. */
export function ramp(ground: Rgb, accent: Rgb, ink: Rgb): Rgb[] {
  return Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1);
    return share < 0.65 ? mixed(ground, accent, share / 0.65) : mixed(accent, ink, ((share - 0.65) / 0.35) * 0.75);
  });
}

/** The colour of a strength. */
export function rampColour(colours: Rgb[], strength: number): Rgb {
  return colours[Math.round(Math.min(Math.max(strength, 0), 1) * (colours.length - 1))];
}

/** The most that is in one cell. */
export function most(counts: number[][]): number {
  let most = 0;
  for (const slice of counts) for (const count of slice) if (count > most) most = count;
  return most;
}
