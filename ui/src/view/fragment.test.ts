import { describe, expect, test } from "vitest";
import { fragmentOf, screenOf } from "./fragment";
import { firstScreen, readScreen, readView, type Screen } from "./screen";

const screen: Screen = {
  ...firstScreen([0, 2]),
  page: "analysis",
  range: [20_000_000_000, 30_000_000_000],
  selection: [21_000_000_000, 22_000_000_001],
  filter: [
    { column: "cpu", is: ["0", "2", "4", "6"] },
    { column: "ready_ns", from: 1_000_000 },
    { column: "process", not_in: [3, null] },
  ],
  tabs: [
    {
      name: "Flood – 日本",
      finding: { trace: 2, place: 1 },
      panels: [
        {
          view: {
            table: "interrupts",
            columns: ["module", "function", "|", "rows", "duration_ns:max"],
            graph: { kind: "timeline", measure: "time", by: "module", as: "stacked" },
            range: null,
            filter: [{ column: "kind", is: ["dpc"] }],
            sort: { column: "duration_ns:max", descending: true },
          },
          title: "DPC duration by module, function",
          hidden: [4, null],
          open: [[7], [7, 12]],
          selected: [[7]],
        },
      ],
    },
  ],
  chart: true,
  wait: { trace: 0, thread_row: 5, thread_id: null, at_ns: 30_400_000_000 },
  query: "SELECT '<b>' FROM cpu_runs",
};

describe("a screen in an address", () => {
  test("is decoded without changes", () => {
    expect(screenOf(`#${fragmentOf(screen)}`, [0, 1, 2])).toEqual(screen);
  });

  test("has only characters that are safe in links", () => {
    expect(fragmentOf(screen)).toMatch(/^v1=[A-Za-z0-9_-]+$/);
  });

  test("is refused if it is cut or invalid", () => {
    const whole = fragmentOf(screen);
    for (const bad of [
      "",
      "v1=",
      "v2=e30",
      whole.slice(0, 40),
      "v1=%%%",
      `v1=${btoa("[1,2]")}`,
      `v1=${btoa("\xff\xfe")}`,
    ]) {
      expect(screenOf(bad, [0])).toBeNull();
    }
  });

  test("contains open traces only", () => {
    expect(screenOf(fragmentOf(screen), [0])!.traces).toEqual([0]);
    expect(screenOf(fragmentOf({ ...screen, traces: [9] }), [3, 4])!.traces).toEqual([3, 4]);
  });
});

describe("content of links is not trusted", () => {
  test("values of wrong types are ignored", () => {
    const read = readScreen(
      {
        page: "admin",
        range: [5, 1],
        selection: ["a", {}],
        filter: [{}, 7, { column: "cpu" }],
        tabs: [{ panels: [{ view: {} }, null] }],
        tab: 99,
      },
      [0],
    )!;
    expect(read).toEqual({ ...firstScreen([0]), tabs: [{ name: "Analysis", panels: [] }] });
  });

  test("a view has exactly one bar", () => {
    expect(readView({ table: "t", columns: ["a", "|", "b", "|", "c"] })!.columns).toEqual(["a", "|", "b", "c"]);
    expect(readView({ table: "t", columns: ["a"] })!.columns).toEqual(["|", "a"]);
    expect(readView({ columns: [] })).toBeNull();
  });
});
