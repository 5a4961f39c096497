// Where each CPU's lane is.

import { AXIS_HEIGHT } from "../canvas/time_axis";

/** Heights, in pixels. */
export interface LaneLayout {
  /** Of a lane with the gap below it. */
  pitch: number;
  /** Of the strip of interrupts at its top. */
  strip: number;
  /** Of the runs below the strip. */
  runs: number;
  /** Of all lanes together. */
  lanes: number;
  /** Of all lanes with the axis below. */
  total: number;
}

const [LEAST, MOST] = [7, 30];

/** Lanes for so many CPUs in about that height: never thinner than can be seen and hit. */
export function laneLayout(cpus: number, height: number): LaneLayout {
  const fair = Math.floor((height - AXIS_HEIGHT) / Math.max(cpus, 1));
  const pitch = Math.min(Math.max(fair, LEAST), MOST);
  const strip = Math.max(Math.round(pitch / 5), 2);
  const lanes = pitch * cpus;
  return { pitch, strip, runs: pitch - strip - (pitch < 12 ? 1 : 2), lanes, total: lanes + AXIS_HEIGHT };
}

/** Which lane is at a height, and whether it is its strip of interrupts. */
export function laneAt(layout: LaneLayout, y: number): { lane: number; interrupts: boolean } | null {
  if (y < 0 || y >= layout.lanes) return null;
  const lane = Math.floor(y / layout.pitch);
  return { lane, interrupts: y - lane * layout.pitch < layout.strip };
}
