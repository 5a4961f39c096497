import { expect, test } from "vitest";
import { fill, pixel } from "./pixels";

test("only the part of a rectangle within the image is filled", () => {
  const image = { data: new Uint32Array(12), width: 4, height: 3 };
  fill(image, 7, 2, 9, -3, 2);
  expect([...image.data]).toEqual([0, 0, 7, 7, 0, 0, 7, 7, 0, 0, 0, 0]);
  fill(image, 9, 9, 20, 0, 3);
  fill(image, 9, 3, 1, 0, 3);
  expect([...image.data].includes(9)).toBe(false);
});

test("a pixel is opaque and has red in the lowest byte", () => {
  expect(new Uint8Array(new Uint32Array([pixel([1, 2, 3])]).buffer)).toEqual(new Uint8Array([1, 2, 3, 255]));
});
