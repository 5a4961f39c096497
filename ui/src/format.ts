// Formats numbers with their units.

const thousands = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Formats a number with a maximum number of significant digits, and without trailing zeros. */
function digits(value: number, significant: number): string {
  const whole = Math.abs(value) >= 10 ** significant;
  if (whole) return thousands.format(value);
  return String(Number(value.toPrecision(significant)));
}

/** Formats a duration with up to five digits, such as `1.5 s`, `19.493 s`, `220 µs` or `12 ns`. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${digits(ns / 1e9, 5)} s`;
  if (size >= 1e6) return `${digits(ns / 1e6, 4)} ms`;
  if (size >= 1e3) return `${digits(ns / 1e3, 4)} µs`;
  return `${digits(ns, 4)} ns`;
}

/** Formats a duration in the form of the server's sentences, such as `19.493 s`, `1.5 ms` or `2 min 05 s`. */
export function worded(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns} ns`;
  if (size < 1e6) return `${toEven(ns / 1e2, 1)} µs`;
  if (size < 1e9) return `${toEven(ns / 1e5, 1)} ms`;
  if (size < 1e11) return `${toEven(ns / 1e6, 3)} s`;
  const seconds = Math.floor(size / 1e9);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const padded = (part: number) => String(part).padStart(2, "0");
  const text = hours === 0 ? `${minutes} min ${padded(seconds % 60)} s` : `${hours} h ${padded(minutes)} min`;
  return ns < 0 ? `-${text}` : text;
}

/** Formats a number that is given in units of its last decimal place. Halves are rounded to even. */
function toEven(parts: number, decimals: number): string {
  const whole = Math.floor(parts);
  const up = parts - whole > 0.5 || (parts - whole === 0.5 && whole % 2 !== 0);
  return ((up ? whole + 1 : whole) / 10 ** decimals).toFixed(decimals);
}

/**
 * Formats a time in seconds. It has as many decimals as are needed to distinguish times that are `step_ns`
 * apart.
 */
export function moment(ns: number, step_ns: number = 1000): string {
  const decimals = Math.min(Math.max(Math.ceil(9 - Math.log10(Math.max(step_ns, 1)) - 1e-9), 0), 9);
  return `${(ns / 1e9).toFixed(decimals)} s`;
}

/** Formats a time range. */
export function timeRange([from, to]: [number, number]): string {
  const step = Math.max((to - from) / 1000, 1);
  return `${moment(from, step).slice(0, -2)} – ${moment(to, step)}`;
}

/** Formats a time range. If its length is 0, formats it as a moment. */
export function when({ start, end }: { start: number; end: number }): string {
  return end > start ? timeRange([start, end]) : `at ${moment(start)}`;
}

/** Formats a count. */
export function count(n: number): string {
  return thousands.format(n);
}

/** Formats a number with few characters, such as `1.2 M`. */
export function short(n: number): string {
  const size = Math.abs(n);
  if (size >= 1e9) return `${digits(n / 1e9, 3)} G`;
  if (size >= 1e6) return `${digits(n / 1e6, 3)} M`;
  if (size >= 1e4) return `${digits(n / 1e3, 3)} k`;
  return digits(n, 3);
}

/** Formats a number of bytes, such as `1.5 MiB`. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let value = n;
  while (Math.abs(value) >= 1024 && power < units.length - 1) {
    value /= 1024;
    power += 1;
  }
  return power === 0 ? `${thousands.format(n)} B` : `${digits(value, 3)} ${units[power]}`;
}

/** Formats a share as a percentage. */
export function percent(share: number): string {
  const value = share * 100;
  return `${Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(Math.abs(value) < 9.995 ? 2 : 1)} %`;
}

/** Formats a value of a column or an axis with its unit. */
export function measured(n: number, unit: string): string {
  switch (unit) {
    case "ns":
      return duration(n);
    case "bytes":
      return bytes(n);
    case "share":
      return percent(n);
    case "":
      return Number.isInteger(n) ? count(n) : digits(n, 4);
    default:
      return `${Number.isInteger(n) ? count(n) : digits(n, 4)} ${unit}`;
  }
}

/** Returns the name of a file without its folders. */
export function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
