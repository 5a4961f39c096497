import { expect, test } from "vitest";
import { bytes, count, duration, measured, moment, percent, short, timeRange, worded } from "./format";

test("durations have a suitable unit", () => {
  expect(duration(0)).toBe("0 ns");
  expect(duration(12)).toBe("12 ns");
  expect(duration(220_000)).toBe("220 µs");
  expect(duration(1_500_000)).toBe("1.5 ms");
  expect(duration(19_493_000_000)).toBe("19.493 s");
  expect(duration(123_456_000_000_000)).toBe("123,456 s");
  expect(duration(-2_000)).toBe("-2 µs");
});

test("durations are formatted like the server's sentences", () => {
  expect(worded(999)).toBe("999 ns");
  expect(worded(1_250)).toBe("1.2 µs");
  expect(worded(1_350)).toBe("1.4 µs");
  expect(worded(-1_500_000)).toBe("-1.5 ms");
  expect(worded(19_493_512_000)).toBe("19.494 s");
  expect(worded(125_000_000_000)).toBe("2 min 05 s");
  expect(worded(-7_260_000_000_000)).toBe("-2 h 01 min");
});

test("moments have enough decimals for their step", () => {
  expect(moment(30_333_000_000, 1_000_000)).toBe("30.333 s");
  expect(moment(30_333_000_000, 1_000_000_000)).toBe("30 s");
  expect(moment(1, 1)).toBe("0.000000001 s");
  expect(timeRange([20_000_000_000, 30_000_000_000])).toBe("20.00 – 30.00 s");
});

test("counts, sizes and shares have their units", () => {
  expect(count(163_230)).toBe("163,230");
  expect(short(163_230)).toBe("163 k");
  expect(bytes(1536)).toBe("1.5 KiB");
  expect(bytes(1023)).toBe("1,023 B");
  expect(percent(0.125)).toBe("12.5 %");
  expect(percent(1)).toBe("100 %");
  expect(measured(3, "1024 CPU cycles")).toBe("3 1024 CPU cycles");
  expect(measured(2.5, "")).toBe("2.5");
});
