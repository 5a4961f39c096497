// Values of stacked series.

/**
 * Returns the cumulative sums of the series, starting with the first. A sum is `null` if all its values are
 * unknown.
 */
export function stacked(series: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const length = series[0]?.length ?? 0;
  const sums: (number | null)[] = new Array<number | null>(length).fill(null);
  return series.map((values) => {
    for (let place = 0; place < length; place++) {
      const value = values[place];
      if (value !== null && value !== undefined) sums[place] = (sums[place] ?? 0) + value;
    }
    return [...sums];
  });
}

/** Returns the maximum of all values. */
export function highest(lines: readonly (readonly (number | null)[])[]): number {
  let most = 0;
  for (const line of lines) for (const value of line) if (value !== null && value > most) most = value;
  return most;
}

/** Returns the index of the bucket that contains a time; `null` if no bucket contains it. */
export function bucketAt(start: number, length: number, count: number, time: number): number | null {
  const place = Math.floor((time - start) / length);
  return place >= 0 && place < count ? place : null;
}
