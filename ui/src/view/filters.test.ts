import { expect, test } from "vitest";
import type { TableInfo } from "../api/types";
import { limitsOf } from "../heat/lines";
import { applicable, byValues, described, joined } from "./filters";

test("values are filtered by labels, unknown ones by ids", () => {
  expect(
    byValues("cpu", [
      { id: 0, label: "0" },
      { id: 2, label: "2" },
    ]),
  ).toEqual({ column: "cpu", is: ["0", "2"] });
  expect(
    byValues(
      "process",
      [
        { id: null, label: "unknown" },
        { id: 2, label: "a.exe (4)" },
      ],
      true,
    ),
  ).toEqual({ column: "process", not_in: [null, 2] });
});

test("a newer filter of a kind replaces the older; exclusions are merged", () => {
  const first = { column: "cpu", is: ["0"] };
  expect(joined([first], { column: "cpu", is: ["2"] })).toEqual([{ column: "cpu", is: ["2"] }]);
  expect(joined([first], { column: "rank", is: ["2"] })).toHaveLength(2);
  expect(joined([{ column: "process", is_not: ["a"] }], { column: "process", is_not: ["b"] })).toEqual([
    { column: "process", is_not: ["a", "b"] },
  ]);
  expect(joined([first], { column: "cpu", is_not: ["1"] })).toHaveLength(2);
});

test("only filters on columns of the table apply", () => {
  const table = { columns: [{ name: "cpu" }] } as TableInfo;
  expect(
    applicable(
      [
        { column: "cpu", is: ["1"] },
        { column: "rank", is: ["2"] },
      ],
      table,
    ),
  ).toEqual([{ column: "cpu", is: ["1"] }]);
  expect(applicable([{ column: "cpu", is: ["1"] }], undefined)).toEqual([]);
});

test("descriptions use titles of columns", () => {
  const ready = {
    name: "ready_ns",
    title: "Ready (us)",
    about: "",
    kind: "measure",
    unit: "ns",
    numeric_key: false,
  } as const;
  expect(described({ column: "ready_ns", from: 1_000_000, to: 2_500_000_000 }, ready)).toBe(
    "Ready ≥ 1 ms, Ready < 2.5 s",
  );
  const thread = {
    name: "thread_id",
    title: "New Thread Id",
    about: "",
    kind: "key",
    unit: "",
    numeric_key: true,
  } as const;
  expect(described({ column: "thread_id", not_in: [0] }, thread)).toBe("New Thread Id: not 0");
  expect(described({ column: "cpu", is: ["0", "2", "4", "6", "8"] })).toBe("cpu: 0, 2, 4, 6, … (5)");
  const reason = { ...thread, name: "wait_reason_out", title: "New Wait Reason", names: { 5: "UserRequest" } };
  expect(described({ column: "wait_reason_out", in: [5, 99, null] }, reason)).toBe(
    "New Wait Reason: UserRequest, 99, unknown",
  );
  const doubtful = { ...thread, name: "doubtful", title: "Doubtful runs", kind: "test" as const, numeric_key: false };
  expect(described({ column: "doubtful", is_not: ["true"] }, doubtful)).toBe("without doubtful runs");
  expect(described({ column: "doubtful", is: ["true"] }, doubtful)).toBe("only doubtful runs");
  const kinds = (is: string[]) => described({ column: "kind", is });
  expect(kinds(["dpc", "threaded_dpc", "timer_dpc", "io_timer"])).toBe("only DPCs");
  expect(kinds(["isr", "msi", "passive_isr"])).toBe("only ISRs");
  expect(kinds(["dpc", "isr", "msi"])).toBe("kind: dpc, isr, msi");
});

test("limits are those of the rows that are counted", () => {
  const labels = (is?: string[]) =>
    limitsOf("interrupts", is ? [{ column: "kind", is }] : []).map(({ label }) => label);
  expect(labels(["dpc", "timer_dpc"])).toEqual(["100 µs: DPC"]);
  expect(labels(["isr", "msi"])).toEqual(["25 µs: ISR"]);
  expect(labels()).toEqual(["25 µs: ISR", "100 µs: DPC"]);
  expect(limitsOf("cpu_runs", [])).toEqual([]);
});
