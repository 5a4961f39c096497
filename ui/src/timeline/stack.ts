// Series one on top of the other, as a picture of areas needs them.

/** Sums from the lowest series up; `null` where nothing is known of any of them. */
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

/** The highest value of all. */
export function highest(lines: readonly (readonly (number | null)[])[]): number {
  let most = 0;
  for (const line of lines) for (const value of line) if (value !== null && value > most) most = value;
  return most;
}

/** Which of the stretches `start + n · length` a time lies in, of `count`; none outside. */
export function bucketAt(start: number, length: number, count: number, time: number): number | null {
  const place = Math.floor((time - start) / length);
  return place >= 0 && place < count ? place : null;
}
