// Numbers as people read them.

const thousands = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** That many significant digits, without zeros at the end. */
function digits(value: number, significant: number): string {
  const whole = Math.abs(value) >= 10 ** significant;
  if (whole) return thousands.format(value);
  return String(Number(value.toPrecision(significant)));
}

/** A span of time in the unit that suits it: `1.5 s`, `19.493 s`, `220 µs`, `12 ns`. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${digits(ns / 1e9, 5)} s`;
  if (size >= 1e6) return `${digits(ns / 1e6, 4)} ms`;
  if (size >= 1e3) return `${digits(ns / 1e3, 4)} µs`;
  return `${digits(ns, 4)} ns`;
}

/** A span of time as sentences have it that the server words: `19.493 s`, `1.5 ms`, `2 min 05 s`. */
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

/** A number of so many decimals, given in units of the last; halves go to the even one. */
function toEven(parts: number, decimals: number): string {
  const whole = Math.floor(parts);
  const up = parts - whole > 0.5 || (parts - whole === 0.5 && whole % 2 !== 0);
  return ((up ? whole + 1 : whole) / 10 ** decimals).toFixed(decimals);
}

/** A moment since the trace's start in seconds, as fine as a step of that length needs. */
export function moment(ns: number, step_ns: number = 1000): string {
  const decimals = Math.min(Math.max(Math.ceil(9 - Math.log10(Math.max(step_ns, 1)) - 1e-9), 0), 9);
  return `${(ns / 1e9).toFixed(decimals)} s`;
}

/** From when to when. */
export function stretch([from, to]: [number, number]): string {
  const step = Math.max((to - from) / 1000, 1);
  return `${moment(from, step).slice(0, -2)} – ${moment(to, step)}`;
}

/** When something was: of what has no length the moment. */
export function when({ start, end }: { start: number; end: number }): string {
  return end > start ? stretch([start, end]) : `at ${moment(start)}`;
}

/** How many. */
export function count(n: number): string {
  return thousands.format(n);
}

/** How many, in few characters: `1.2 M`. */
export function short(n: number): string {
  const size = Math.abs(n);
  if (size >= 1e9) return `${digits(n / 1e9, 3)} G`;
  if (size >= 1e6) return `${digits(n / 1e6, 3)} M`;
  if (size >= 1e4) return `${digits(n / 1e3, 3)} k`;
  return digits(n, 3);
}

/** A size in the unit that suits it, by steps of 1024: `1.5 MiB`. */
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

/** A share as percent. */
export function percent(share: number): string {
  const value = share * 100;
  return `${Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(Math.abs(value) < 9.995 ? 2 : 1)} %`;
}

/** A value of a column or an axis with that unit. */
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

/** A name of a file, without its folders. */
export function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
