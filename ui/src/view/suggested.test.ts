import { expect, test } from "vitest";
import type { Finding, Preset } from "../api/types";
import { suggested } from "./suggested";

const preset = (name: string, table: string, measure: string): Preset => ({
  name,
  group: "",
  view: { table, columns: ["|"], graph: { kind: "timeline", measure } },
});
const finding = (severity: Finding["severity"], ...views: [table: string, measure: string][]): Finding =>
  ({
    severity,
    evidence: views.map(([table, measure]) => ({ view: preset("", table, measure).view, rows: [] })),
  }) as unknown as Finding;

const presets = [
  preset("Use", "cpu_runs", "time"),
  preset("Ready", "cpu_runs", "ready_ns"),
  preset("Interrupts", "interrupts", "time"),
  preset("Disk", "disk_io", "service_ns"),
];
const names = (found: Preset[]) => found.map(({ name }) => name);

test("the evidence of the most important findings comes first", () => {
  const findings = [finding("problem", ["cpu_runs", "ready_ns"]), finding("warning", ["disk_io", "rows"])];
  expect(names(suggested(findings, presets, presets))).toEqual(["Ready", "Disk", "Use"]);
});

test("without findings, graphs of the overview are suggested", () => {
  expect(names(suggested([finding("information", ["disk_io", "rows"])], presets, presets.slice(0, 2)))).toEqual([
    "Use",
    "Ready",
  ]);
  expect(suggested([], [], [])).toEqual([]);
});
