// Vertical axis of the medians of runs.

export interface MedianAxis {
  /** Returns the position of a value, from 0 at the bottom to 1 at the top. */
  share: (value: number) => number;
  /** Values that get a line and a label, ascending. */
  marks: number[];
}

/**
 * Returns an axis that contains all values, with some space at both ends. The axis is logarithmic if all values are
 * positive. If all values are equal, only this value has a mark.
 */
export function medianAxis(values: number[]): MedianAxis {
  const isLogarithmic = values.every((value) => value > 0);
  const scaled = (value: number) => (isLogarithmic ? Math.log(value) : value);
  const least = Math.min(...values.map(scaled));
  const most = Math.max(...values.map(scaled));
  const space = most > least ? (most - least) * 0.06 : Math.max(Math.abs(least), 1);
  const [low, high] = [least - space, most + space];
  const valueAt = (share: number) => {
    const at = low + (high - low) * share;
    return isLogarithmic ? Math.exp(at) : at;
  };
  return {
    share: (value) => (scaled(value) - low) / (high - low),
    marks: most > least ? [0, 0.25, 0.5, 0.75, 1].map(valueAt) : values.slice(0, 1),
  };
}
