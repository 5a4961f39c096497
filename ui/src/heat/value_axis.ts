// Vertical axis of values. All classes have the same height, so equal factors have equal heights.

/** Position of the classes, in pixels. The first class is at the bottom of the axis. */
export interface ValueAxis {
  bounds: number[];
  top: number;
  bottom: number;
}

/** Returns the height of a class, in pixels. */
export function classHeight({ bounds, top, bottom }: ValueAxis): number {
  return (bottom - top) / Math.max(bounds.length - 1, 1);
}

/** Returns the class at a vertical position; `null` outside the axis. */
export function classAt(axis: ValueAxis, y: number): number | null {
  const row = Math.floor((axis.bottom - y) / classHeight(axis));
  return row >= 0 && row < axis.bounds.length - 1 ? row : null;
}

/** Returns the class that is nearest to a vertical position. */
export function classNear(axis: ValueAxis, y: number): number {
  const row = Math.floor((axis.bottom - y) / classHeight(axis));
  return Math.min(Math.max(row, 0), axis.bounds.length - 2);
}

/** Returns the vertical position of a value; `null` outside the axis. */
export function heightOf(axis: ValueAxis, value: number): number | null {
  const { bounds } = axis;
  const last = bounds.length - 1;
  if (last < 1 || value < bounds[0] || value > bounds[last]) return null;
  const row = Math.min(Math.max(bounds.findIndex((bound) => bound >= value) - 1, 0), last - 1);
  const [low, high] = [bounds[row], bounds[row + 1]];
  const share = low > 0 ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return axis.bottom - (row + share) * classHeight(axis);
}

/**
 * Returns the values that get a label, with their positions: 1, 10, 100 and so on, and their multiples by 2
 * and 5 if there is room.
 */
export function valueTicks(axis: ValueAxis, apart: number): { value: number; y: number }[] {
  const { bounds } = axis;
  const last = bounds[bounds.length - 1];
  const first = Math.max(bounds[0], 1);
  if (bounds.length < 2 || last <= first) return [];
  const decades = Math.log10(last / first);
  const room = (axis.bottom - axis.top) / Math.max(decades, 0.1);
  const parts = room >= apart * 5 ? [1, 2, 5] : [1];
  const every = Math.max(Math.ceil(apart / room), 1);
  const ticks: { value: number; y: number }[] = [];
  for (let power = Math.floor(Math.log10(first)); power <= Math.log10(last); power++) {
    if (power % every !== 0) continue;
    for (const part of parts) {
      const value = part * 10 ** power;
      const y = heightOf(axis, value);
      if (y !== null) ticks.push({ value, y });
    }
  }
  return ticks;
}
