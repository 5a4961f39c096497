// Binary search among runs, which are sorted by time and do not overlap.

/** Returns the number of sorted times at or before a time. */
export function upTo(times: ArrayLike<number>, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the index of the run that contains a time, or -1. */
export function containing(start: ArrayLike<number>, end: ArrayLike<number>, time: number): number {
  const place = upTo(start, time) - 1;
  return place >= 0 && time < end[place] ? place : -1;
}

/** Returns the index of the run that contains a time or is nearest to it, at most `within` away, or -1. */
export function nearest(start: ArrayLike<number>, end: ArrayLike<number>, time: number, within: number): number {
  const before = upTo(start, time) - 1;
  const sinceEnd = before >= 0 ? Math.max(time - end[before], 0) : Infinity;
  const untilStart = before + 1 < start.length ? start[before + 1] - time : Infinity;
  if (Math.min(sinceEnd, untilStart) > within) return -1;
  return sinceEnd <= untilStart ? before : before + 1;
}

/** Returns the index of the first run that ends after a time. */
export function firstAfter(end: ArrayLike<number>, time: number): number {
  return upTo(end, time);
}
