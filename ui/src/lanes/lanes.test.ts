import { describe, expect, test } from "vitest";
import type { LanesAnswer, Wake } from "../api/types";
import { gapsOf } from "./gaps";
import { described, hitAt, kindOf, neighbour, wakeOf } from "./hit";
import { laneAt, laneLayout } from "./layout";
import { shares } from "./shares";
import { wakesToDraw } from "./wakes";

const none = { start: [], end: [], kind: [], image: [], busy: [] };
const wake: Wake = {
  from_cpu: 1,
  at_ns: 90,
  to_cpu: 2,
  run_start_ns: 100,
  readying_thread: 8,
  by_dpc: false,
  thread: 7,
};
const recorded = { recorded_from_ns: null, recorded_until_ns: null, doubtful: { start: [], end: [] } };
const answer: LanesAnswer = {
  start_ns: 0,
  end_ns: 1000,
  cpus: [
    {
      cpu: 2,
      runs: { start: [100, 300], end: [200, 900], process: [1, null], thread: [7, 9], busy: [1, 1] },
      interrupts: { start: [150], end: [152], kind: ["timer_dpc"], image: [5], busy: [1] },
      ...recorded,
    },
    { cpu: 4, runs: { start: [], end: [], process: [], thread: [], busy: [] }, interrupts: none, ...recorded },
  ],
  labels: { process: { 1: "a.exe (4)" }, thread: { 7: "70", 8: "80" }, image: { 5: "tcpip.sys" } },
  wakes: [wake],
  exact: true,
  interrupts_exact: true,
  left_out: 0,
};

describe("lanes", () => {
  test("share the height and stay readable", () => {
    expect(laneLayout(4, 120)).toMatchObject({ pitch: 25, lanes: 100, total: 120 });
    expect(laneLayout(128, 320)).toMatchObject({ pitch: 7, strip: 2, runs: 4 });
    expect(laneLayout(1, 320).pitch).toBe(30);
  });

  test("are found by position, with their strip of interrupts", () => {
    const layout = laneLayout(2, 80);
    expect(laneAt(layout, 1)).toEqual({ lane: 0, interrupts: true });
    expect(laneAt(layout, layout.pitch + layout.strip)).toEqual({ lane: 1, interrupts: false });
    expect(laneAt(layout, layout.lanes)).toBeNull();
    expect(laneAt(layout, -1)).toBeNull();
  });
});

describe("the run under the pointer", () => {
  test("is the run at the time, or the interrupt near it", () => {
    expect(hitAt(answer, 0, 150, 5, false)).toMatchObject({ interrupt: false, place: 0, start_ns: 100, end_ns: 200 });
    expect(hitAt(answer, 0, 155, 5, true)).toMatchObject({ interrupt: true, place: 0 });
    expect(hitAt(answer, 0, 190, 5, true)).toMatchObject({ interrupt: false, place: 0 });
    expect(hitAt(answer, 0, 203, 5, false)).toMatchObject({ interrupt: false, place: 0 });
    expect(hitAt(answer, 0, 250, 5, false)).toBeNull();
    expect(hitAt(answer, 1, 150, 5, false)).toBeNull();
    expect(hitAt(answer, 7, 150, 5, false)).toBeNull();
  });

  test("is described with its thread, its times and its wake", () => {
    const hit = hitAt(answer, 0, 150, 0, false)!;
    expect(wakeOf(answer, hit)).toBe(wake);
    const { title, lines } = described(answer, hit);
    expect(title).toBe("a.exe (4)");
    expect(new Map(lines)).toEqual(
      new Map([
        ["thread", "70"],
        ["from", "0.0000001 s"],
        ["for", "100 ns"],
        ["CPU", "2"],
        ["readied by", "80"],
        ["was ready", "10 ns"],
      ]),
    );
  });

  test("may be longer if it is cut", () => {
    const cut = { ...answer, start_ns: 100 };
    expect(described(cut, hitAt(cut, 0, 150, 0, false)!).lines).toContainEqual(["for", "at least 100 ns"]);
  });

  test("is unknown if the trace has no process", () => {
    expect(described(answer, neighbour(answer, hitAt(answer, 0, 150, 0, false)!, 1)!).title).toBe("unknown");
    expect(neighbour(answer, hitAt(answer, 0, 150, 0, false)!, -1)).toBeNull();
  });

  test("has names of interrupts", () => {
    expect(described(answer, hitAt(answer, 0, 151, 0, true)!).title).toBe("timer DPC of tcpip.sys");
    expect(kindOf("constructor")).toBe("constructor");
  });
});

test("the legend has processes and kinds of interrupts with their times within the range", () => {
  // The length of the second run is 600. Only 200 of this length is before 500, the end of the time range.
  const { processes, kinds } = shares(answer, [0, 500]);
  expect(processes.map(({ label, ns }) => [label, ns])).toEqual([
    ["unknown", 200],
    ["a.exe (4)", 100],
  ]);
  expect(kinds).toEqual([{ label: "timer DPC", color: "var(--dpc-timer)", ns: 2 }]);
  // A column shows only the process that ran longest in the column, so the times are unknown.
  expect(shares({ ...answer, exact: false }, [0, 500]).processes.map(({ ns }) => ns)).toEqual([null, null]);
  expect(shares(answer, [950, 1000])).toEqual({ processes: [], kinds: [] });
});

test("a CPU has gaps before its first and after its last event", () => {
  const [lane] = answer.cpus;
  expect(gapsOf(lane, [0, 1000])).toEqual([]);
  expect(gapsOf({ ...lane, recorded_from_ns: 100, recorded_until_ns: 900 }, [0, 1000])).toEqual([
    [0, 100],
    [900, 1000],
  ]);
  expect(gapsOf({ ...lane, recorded_from_ns: null, recorded_until_ns: 900 }, [950, 1000])).toEqual([[950, 1000]]);
  expect(gapsOf({ ...lane, recorded_until_ns: 900 }, [0, 900])).toEqual([]);
});

test("doubtful runs are gaps", () => {
  const [lane] = answer.cpus;
  const doubtful = { start: [100, 400, 800], end: [200, 600, 900] };
  expect(gapsOf({ ...lane, doubtful }, [150, 500])).toEqual([
    [150, 200],
    [400, 500],
  ]);
});

describe("wakes", () => {
  test("are drawn if they are visible", () => {
    expect(wakesToDraw(answer, [0, 1000]).drawn).toEqual([wake]);
    expect(wakesToDraw(answer, [200, 1000]).drawn).toEqual([]);
    expect(wakesToDraw({ ...answer, exact: false }, [0, 1000])).toEqual({ drawn: [], tooMany: false });
  });

  test("are omitted if there are too many", () => {
    const many = { ...answer, wakes: Array<Wake>(500).fill(wake) };
    expect(wakesToDraw(many, [0, 1000])).toEqual({ drawn: [], tooMany: true });
  });
});
