import { expect, test } from "vitest";
import { css, inkOn, mixed, partsOf } from "./theme";

test("computed colours are parsed", () => {
  expect(partsOf("rgb(1, 2, 3)")).toEqual([1, 2, 3]);
  expect(partsOf("rgba(11, 92, 173, 0.13)")).toEqual([11, 92, 173]);
  expect(partsOf("color(srgb 0.2 0.4 1 / 0.5)")).toEqual([51, 102, 255]);
});

test("colours are mixed by their share", () => {
  expect(mixed([0, 0, 0], [200, 100, 50], 0.5)).toEqual([100, 50, 25]);
  expect(css([1, 2, 3])).toBe("rgb(1,2,3)");
  expect(css([1, 2, 3], 0.5)).toBe("rgba(1,2,3,0.5)");
});

test("ink contrasts with its background", () => {
  expect([inkOn([255, 255, 255]), inkOn([255, 220, 0]), inkOn([0, 0, 0]), inkOn([120, 0, 120])]).toEqual([
    "#111",
    "#111",
    "#fff",
    "#fff",
  ]);
});
