// Logarithmic axis of durations, and heights of bars.

/** Returns the position of a duration between the ends of an axis, from 0 to 1. */
export function along(ns: number, [low, high]: [number, number]): number {
  const from = Math.log(Math.max(low, 1));
  const share = (Math.log(Math.max(ns, 1)) - from) / Math.max(Math.log(high) - from, 1e-9);
  return Math.min(Math.max(share, 0), 1);
}

/** Returns the powers of ten between the ends of an axis. */
export function tens([low, high]: [number, number]): number[] {
  const powers: number[] = [];
  for (let power = 10 ** Math.ceil(Math.log10(Math.max(low, 1))); power <= high; power *= 10) powers.push(power);
  return powers;
}

/**
 * Returns the height of a bar, from 0 to 1. On a logarithmic scale, the rate `least` also has a height above 0, so
 * that a single late value is visible.
 */
export function height(rate: number, least: number, most: number, isLogarithmic: boolean): number {
  if (rate <= 0 || most <= 0) return 0;
  if (!isLogarithmic) return rate / most;
  const decades = (of: number) => 1 + Math.max(Math.log10(of / least), 0);
  return decades(rate) / decades(most);
}
