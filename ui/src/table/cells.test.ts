import { expect, test } from "vitest";
import type { TableInfo } from "../api/types";
import { UNKNOWN, cellRaw, cellText } from "./cells";

const table = {
  columns: [
    { name: "cpu_ns", kind: "measure", unit: "ns" },
    { name: "thread_id", kind: "key", unit: "", numeric_key: true },
    { name: "start_ns", kind: "time", unit: "ns" },
  ],
} as TableInfo;

test("cells have units and separators", () => {
  expect(cellText(table, "cpu_ns:sum", 36_800_000_000)).toBe("36.8 s");
  expect(cellText(table, "cpu_ns:count", 163_230)).toBe("163,230");
  expect(cellText(table, "rows", 12_345)).toBe("12,345");
  expect(cellText(table, "thread_id", 12_345)).toBe("12345");
  expect(cellText(table, "start_ns:min", 30_333_000_000)).toBe("30.333000 s");
  expect(cellText(table, "process", { different: 12_000 })).toBe("12,000 different");
  expect(cellText(table, "cpu_ns:sum", null)).toBe(UNKNOWN);
  expect(cellText(table, "process", "<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
});

test("copied cells are plain", () => {
  expect(cellRaw(36_800_000_000)).toBe("36800000000");
  expect(cellRaw(null)).toBe("");
  expect(cellRaw({ different: 3 })).toBe("3 different");
});
