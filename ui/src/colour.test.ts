import { expect, test, vi } from "vitest";
import { COLOURS, nameOf, paletteColor, valueColor } from "./colour";

test("a name has one colour, with any id and in any case", () => {
  expect(paletteColor("chrome.exe (144)")).toBe(paletteColor("Chrome.exe (9200)"));
  expect(nameOf("a (b) (12)")).toBe("a (b)");
});

test("labels of a program have different shades, which depend on nothing but the label", async () => {
  const labels = ["wpa.exe (8)", "wpa.exe (12)", "wpa.exe (16)"];
  const colours = labels.map((label) => valueColor("process", label));
  expect(new Set(colours).size).toBe(3);
  for (const color of colours) expect(color).toContain(paletteColor("wpa.exe"));
  expect(valueColor("readying_process", "WPA.exe (12)")).toBe(colours[1]);
  // Another page that sees other labels first gives the same colours.
  vi.resetModules();
  const other = await import("./colour");
  for (let id = 4; id < 400; id += 4) other.valueColor("process", `wpa.exe (${id})`);
  expect(labels.toReversed().map((label) => other.valueColor("process", label))).toEqual(colours.toReversed());
});

test("names of object properties are ordinary names", () => {
  for (const name of ["constructor", "__proto__", "toString"])
    expect(paletteColor(name)).toMatch(/^var\(--series-\d+\)$/);
});

test("colours spread over the palette", () => {
  const used = new Set(Array.from({ length: 500 }, (_, place) => paletteColor(`program${place}.exe`)));
  expect(used.size).toBe(COLOURS);
});

test("priorities are a scale, ranks above 0 stand out, processors differ from their neighbours", () => {
  expect(valueColor("priority", "4")).not.toBe(valueColor("priority", "14"));
  expect(valueColor("priority", "8")).toBe(valueColor("new_priority", "8"));
  expect(valueColor("rank", "2")).toBe("var(--rank-2)");
  expect(valueColor("rank", "9")).toBe("var(--rank-4)");
  const cpus = Array.from({ length: 28 }, (_, cpu) => valueColor("cpu", String(cpu)));
  expect(new Set(cpus).size).toBe(28);
});
