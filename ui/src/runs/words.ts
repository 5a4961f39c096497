// Words of a comparison of runs.

import type { RunsPicture } from "../api/types";
import { duration, measured } from "../format";

/** Formats a value with its unit. Very large or small numbers have an exponent. */
export function valueText(value: number, unit: RunsPicture["unit"]): string {
  if (unit === "nanoseconds") return duration(value);
  const size = Math.abs(value);
  return size > 0 && (size < 1e-6 || size >= 1e15) ? value.toExponential(3) : measured(value, "");
}
