import { expect, test } from "vitest";
import { fit } from "./search";
import { wpaNames } from "./wpa_names";

test("all words must be in a name, in any order and with any punctuation", () => {
  expect(fit("precise cpu", ["Utilization by CPU", "CPU Usage (Precise)"])).toBeGreaterThan(0);
  expect(fit("dpc isr", ["DPC/ISR"])).toBeGreaterThan(0);
  expect(fit("disk precise", ["Utilization by CPU", "CPU Usage (Precise)"])).toBe(0);
  expect(fit("  ", ["anything"])).toBeGreaterThan(0);
});

test("titles fit better than other names", () => {
  const [exact, start, inside, other] = [
    fit("disk use", ["Disk use"]),
    fit("disk use", ["Disk use by disk"]),
    fit("disk", ["Stacks of disk requests"]),
    fit("disk", ["File operations", "Disk"]),
  ];
  expect([exact > start, start > inside, inside > other, other > 0]).toEqual([true, true, true, true]);
});

test("names of object properties are ordinary names", () => {
  expect(wpaNames("constructor")).toEqual([]);
  expect(wpaNames("Utilization by process, thread")).toContain("CPU Usage (Precise)");
});
