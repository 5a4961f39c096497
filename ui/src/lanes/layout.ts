// Positions of the lanes of CPUs.

import { AXIS_HEIGHT } from "../canvas/time_axis";

/** Heights of the lanes, in pixels. */
export interface LaneLayout {
  /** Height of a lane, including the gap below it. */
  pitch: number;
  /** Height of the strip of interrupts at the top of a lane. */
  strip: number;
  /** Height of the runs, which are below the strip of interrupts. */
  runs: number;
  /** Height of all lanes. */
  lanes: number;
  /** Height of all lanes together with the time axis. */
  total: number;
}

/** Minimum and maximum height of a lane, in pixels. */
const [MIN, MAX] = [7, 30];

/**
 * Computes the heights of lanes, so that all lanes need about the given height. Lanes are never too thin to
 * see and to click.
 */
export function laneLayout(cpus: number, height: number): LaneLayout {
  const fair = Math.floor((height - AXIS_HEIGHT) / Math.max(cpus, 1));
  const pitch = Math.min(Math.max(fair, MIN), MAX);
  const strip = Math.max(Math.round(pitch / 5), 2);
  const lanes = pitch * cpus;
  return { pitch, strip, runs: pitch - strip - (pitch < 12 ? 1 : 2), lanes, total: lanes + AXIS_HEIGHT };
}

/**
 * Returns the lane at a vertical position. `interrupts` is true if the position is in the lane's strip of
 * interrupts.
 */
export function laneAt(layout: LaneLayout, y: number): { lane: number; interrupts: boolean } | null {
  if (y < 0 || y >= layout.lanes) return null;
  const lane = Math.floor(y / layout.pitch);
  return { lane, interrupts: y - lane * layout.pitch < layout.strip };
}
