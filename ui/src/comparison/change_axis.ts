// Vertical axis of changes: ratios or differences. No change is in the middle of the axis.

export interface ChangeAxis {
  /** Returns the position of a change, from 0 at the bottom to 1 at the top. */
  share: (change: number) => number;
  /** Changes that get a line, without the one in the middle. */
  marks: number[];
}

/** Returns a logarithmic axis for ratios. It spans at least from 1 / `least` to `least`. */
export function ratioAxis(ratios: number[], least: number): ChangeAxis {
  const logarithm = (ratio: number) => Math.log(Math.max(ratio, 1e-9));
  const most = Math.max(Math.log(least), ...ratios.map((ratio) => Math.abs(logarithm(ratio)))) * 1.06;
  const above = most >= Math.LN2 ? powers(most) : steps(Math.expm1(most)).map((step) => 1 + step);
  return {
    share: (ratio) => (logarithm(ratio) / most + 1) / 2,
    marks: [...above, ...above.map((ratio) => 1 / ratio)],
  };
}

/** Returns a linear axis for differences. */
export function differenceAxis(differences: number[]): ChangeAxis {
  const greatest = Math.max(0, ...differences.map(Math.abs));
  const most = greatest > 0 ? greatest * 1.06 : 1;
  const above = greatest > 0 ? steps(most) : [];
  return {
    share: (difference) => (difference / most + 1) / 2,
    marks: [...above, ...above.map((difference) => -difference)],
  };
}

/** Returns powers of two up to a logarithm, about three of them. */
function powers(most: number): number[] {
  const all = Math.floor(most / Math.LN2);
  const step = Math.max(Math.ceil(all / 3), 1);
  return Array.from({ length: Math.floor(all / step) }, (_, place) => 2 ** ((place + 1) * step));
}

/** Returns multiples of 1, 2 or 5 × 10ⁿ up to a value: two to four of them. */
function steps(most: number): number[] {
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = [5, 2, 1].map((part) => part * power).find((step) => step * 2 <= most) ?? most;
  return Array.from({ length: Math.floor(most / step) }, (_, place) => step * (place + 1));
}
