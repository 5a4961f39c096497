import { describe, expect, test } from "vitest";
import type { LanesAnswer, Wake } from "./answer";
import { gapsOf } from "./gaps";
import { beside, described, hitAt, kindOf, wakeOf } from "./hit";
import { laneAt, laneLayout } from "./layout";
import { shares } from "./shares";
import { wakesToDraw } from "./wakes";

const none = { start: [], end: [], kind: [], image: [], busy: [] };
const wake: Wake = { from_cpu: 1, at_ns: 90, to_cpu: 2, run_start_ns: 100, readying_thread: 8, by_dpc: false, thread: 7 };
const answer: LanesAnswer = {
  start_ns: 0,
  end_ns: 1000,
  cpus: [
    {
      cpu: 2,
      runs: { start: [100, 300], end: [200, 900], process: [1, null], thread: [7, 9], busy: [1, 1] },
      interrupts: { start: [150], end: [152], kind: ["timer_dpc"], image: [5], busy: [1] },
    },
    { cpu: 4, runs: { start: [], end: [], process: [], thread: [], busy: [] }, interrupts: none },
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

  test("are found by height, with their strip of interrupts", () => {
    const layout = laneLayout(2, 80);
    expect(laneAt(layout, 1)).toEqual({ lane: 0, interrupts: true });
    expect(laneAt(layout, layout.pitch + layout.strip)).toEqual({ lane: 1, interrupts: false });
    expect(laneAt(layout, layout.lanes)).toBeNull();
    expect(laneAt(layout, -1)).toBeNull();
  });
});

describe("what is hit", () => {
  test("is the run at the moment, or the interrupt near it", () => {
    expect(hitAt(answer, 0, 150, 5, false)).toMatchObject({ interrupt: false, place: 0, start_ns: 100, end_ns: 200 });
    expect(hitAt(answer, 0, 155, 5, true)).toMatchObject({ interrupt: true, place: 0 });
    expect(hitAt(answer, 0, 190, 5, true)).toMatchObject({ interrupt: false, place: 0 });
    expect(hitAt(answer, 0, 203, 5, false)).toMatchObject({ interrupt: false, place: 0 });
    expect(hitAt(answer, 0, 250, 5, false)).toBeNull();
    expect(hitAt(answer, 1, 150, 5, false)).toBeNull();
    expect(hitAt(answer, 7, 150, 5, false)).toBeNull();
  });

  test("says who ran, how long, and who made it ready", () => {
    const hit = hitAt(answer, 0, 150, 0, false)!;
    expect(wakeOf(answer, hit)).toBe(wake);
    const { title, lines } = described(answer, hit);
    expect(title).toBe("a.exe (4)");
    expect(new Map(lines)).toEqual(
      new Map([["thread", "70"], ["from", "0.0000001 s"], ["for", "100 ns"], ["CPU", "2"], ["readied by", "80"], ["was ready", "10 ns"]]),
    );
  });

  test("may be longer where it is cut", () => {
    const cut = { ...answer, start_ns: 100 };
    expect(described(cut, hitAt(cut, 0, 150, 0, false)!).lines).toContainEqual(["for", "at least 100 ns"]);
  });

  test("is unknown where the trace does not tell", () => {
    expect(described(answer, beside(answer, hitAt(answer, 0, 150, 0, false)!, 1)!).title).toBe("unknown");
    expect(beside(answer, hitAt(answer, 0, 150, 0, false)!, -1)).toBeNull();
  });

  test("names interrupts as people do", () => {
    expect(described(answer, hitAt(answer, 0, 151, 0, true)!).title).toBe("timer DPC of tcpip.sys");
    expect(kindOf("constructor")).toBe("constructor");
  });
});

test("the legend has who ran how long within the range, and interrupts by kind", () => {
  // Until 500 the second run had 200 of its 600.
  const { processes, kinds } = shares(answer, [0, 500]);
  expect(processes.map(({ label, ns }) => [label, ns])).toEqual([["unknown", 200], ["a.exe (4)", 100]]);
  expect(kinds).toEqual([{ label: "timer DPC", color: "var(--dpc-timer)", ns: 2 }]);
  // A column has the process that ran longest in it: of others it says nothing.
  expect(shares({ ...answer, exact: false }, [0, 500]).processes.map(({ ns }) => ns)).toEqual([null, null]);
  expect(shares(answer, [950, 1000])).toEqual({ processes: [], kinds: [] });
});

test("what a trace does not hold of a CPU is before and after its record", () => {
  const [lane] = answer.cpus;
  expect(gapsOf(lane!, [0, 1000])).toEqual([]);
  expect(gapsOf({ ...lane!, recorded_from_ns: 100, recorded_until_ns: 900 }, [0, 1000])).toEqual([[0, 100], [900, 1000]]);
  expect(gapsOf({ ...lane!, recorded_from_ns: null, recorded_until_ns: 900 }, [950, 1000])).toEqual([[950, 1000]]);
  expect(gapsOf({ ...lane!, recorded_until_ns: 900 }, [0, 900])).toEqual([]);
});

test("who had a CPU during doubtful runs is not known", () => {
  const [lane] = answer.cpus;
  const doubtful = { start: [100, 400, 800], end: [200, 600, 900] };
  expect(gapsOf({ ...lane!, doubtful }, [150, 500])).toEqual([[150, 200], [400, 500]]);
});

describe("wakes", () => {
  test("are drawn where they are seen", () => {
    expect(wakesToDraw(answer, [0, 1000]).drawn).toEqual([wake]);
    expect(wakesToDraw(answer, [200, 1000]).drawn).toEqual([]);
    expect(wakesToDraw({ ...answer, exact: false }, [0, 1000])).toEqual({ drawn: [], tooMany: false });
  });

  test("are left out where there are too many", () => {
    const many = { ...answer, wakes: Array<Wake>(500).fill(wake) };
    expect(wakesToDraw(many, [0, 1000])).toEqual({ drawn: [], tooMany: true });
  });
});
