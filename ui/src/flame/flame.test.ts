import { describe, expect, test } from "vitest";
import type { FlameAnswer, Nodes } from "../api/types";
import { functionOf, moduleOf } from "./frames";
import { calleesOf, callRows, hotPath } from "./calls";
import { changed, differences, greatest, sharesOf, unionWidths } from "./difference";
import { callAt, layOut, visibleCalls } from "./layout";
import { matchedWeight, matcher, matchingFrames } from "./search";
import { callees, callOf, heaviestCallee, pathOf, sibling } from "./walk";

const frames = ["a.exe!main", "b.dll!work", "c.sys!wait", "b.dll!WORK<T>"];
// Weights of the tree: main has 100. It calls work (60) and wait (25). work calls wait (20) and work<T> (30).
// A second root is wait with 100.
const nodes: Nodes = {
  parent: [null, 0, 1, 1, 0, null],
  frame: [0, 1, 2, 3, 2, 2],
  self: [15, 10, 20, 30, 25, 100],
  total: [100, 60, 20, 30, 25, 100],
  compared: null,
};
const layout = layOut(nodes, nodes.total);

describe("the layout", () => {
  test("places callees side by side at their caller, with widths by weight", () => {
    expect([...layout.from].map((at) => at * 200)).toEqual([0, 0, 0, 20, 60, 100]);
    expect([...layout.to].map((at) => Math.round(at * 200))).toEqual([100, 60, 20, 50, 85, 200]);
    expect([...layout.depth]).toEqual([0, 1, 2, 2, 1, 0]);
    expect([...layout.next]).toEqual([5, 4, 3, 4, 5, 6]);
  });

  test("shows calls that are wide enough", () => {
    expect(visibleCalls(layout, [0, 1], 0)).toEqual({ nodes: [0, 1, 2, 3, 4, 5], rows: 3 });
    expect(visibleCalls(layout, [0, 1], 0.2)).toEqual({ nodes: [0, 1, 5], rows: 2 });
    expect(visibleCalls(layout, [0.5, 1], 0.001)).toEqual({ nodes: [5], rows: 1 });
  });

  test("finds the call at a position", () => {
    const at = (depth: number, weight: number) => callAt(layout, depth, weight / 200);
    expect([at(0, 99), at(0, 101), at(1, 59), at(1, 61), at(2, 19.9), at(2, 20.1), at(2, 55), at(9, 1)]).toEqual([
      0, 5, 1, 4, 2, 3, -1, -1,
    ]);
  });

  test("of no calls is empty", () => {
    const empty: Nodes = { parent: [], frame: [], self: [], total: [], compared: null };
    expect(visibleCalls(layOut(empty, []), [0, 1], 0)).toEqual({ nodes: [], rows: 0 });
    expect([...layOut(nodes, [0, 0, 0, 0, 0, 0]).to]).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe("keyboard steps", () => {
  test("go to callees, siblings and along names", () => {
    expect(callees(layout, 0)).toEqual([1, 4]);
    expect(heaviestCallee(layout, 1, nodes.total)).toBe(3);
    expect(heaviestCallee(layout, 2, nodes.total)).toBe(-1);
    expect([
      sibling(nodes, layout, 1, 1),
      sibling(nodes, layout, 4, -1),
      sibling(nodes, layout, 4, 1),
      sibling(nodes, layout, 0, 1),
      sibling(nodes, layout, 5, -1),
    ]).toEqual([4, 1, -1, 5, 0]);
    expect(pathOf(frames, nodes, 3)).toEqual(["a.exe!main", "b.dll!work", "b.dll!WORK<T>"]);
  });

  test("find the same call in another answer, or its nearest caller", () => {
    for (const node of nodes.parent.keys())
      expect(callOf(frames, nodes, layout, pathOf(frames, nodes, node))).toBe(node);
    expect(callOf(frames, nodes, layout, ["a.exe!main", "gone"])).toBe(0);
    expect(callOf(frames, nodes, layout, ["gone"])).toBe(-1);
    expect(callOf(frames, nodes, layout, [])).toBe(-1);
  });
});

describe("the search for frames", () => {
  test("ignores case and supports patterns", () => {
    expect(matchingFrames(frames, "Work")).toEqual([false, true, false, true]);
    expect(matchingFrames(frames, "/^c\\.|main$/")).toEqual([true, false, true, false]);
    expect(matchingFrames(frames, "  ")).toBeNull();
    expect(matcher("/[/")!("x/[/y")).toBe(true);
  });

  test("counts each stack once", () => {
    expect(matchedWeight(nodes, matchingFrames(frames, "work")!, nodes.total)).toBe(60);
    expect(matchedWeight(nodes, matchingFrames(frames, "wait")!, nodes.total)).toBe(20 + 25 + 100);
    expect(matchedWeight(nodes, matchingFrames(frames, "nothing")!, nodes.total)).toBe(0);
  });
});

describe("differences", () => {
  const answer: FlameAnswer = {
    total: 200,
    compared_total: 400,
    known: 1,
    frames,
    cut: 0,
    unit: "ns",
    sql: null,
    nodes: { ...nodes, compared: [100, 0, 0, 0, 100, 300] },
  };
  test("are of shares, not of weights", () => {
    const of = (answer: FlameAnswer) => differences(sharesOf(answer)!);
    expect([...of(answer)]).toEqual([0.25, 0.3, 0.1, 0.15, -0.125, -0.25]);
    expect(greatest(of(answer))).toBe(0.3);
    expect(sharesOf({ ...answer, nodes })).toBeNull();
    expect(of({ ...answer, compared_total: 0 })[0]).toBe(0.5);
    // If total weights are given, shares are computed from these totals.
    expect(differences(sharesOf(answer, [1000, 1000])!)[0]).toBe(0);
  });
  test("have the widths of the larger side, and callees fit below their callers", () => {
    const widths = unionWidths(nodes, sharesOf(answer, [1, 1])!);
    expect(widths).toEqual([160, 60, 20, 30, 100, 300]);
    const { from, to } = layOut(nodes, widths, 460);
    nodes.parent.forEach((caller, node) => {
      if (caller === null) return;
      expect(from[node]).toBeGreaterThanOrEqual(from[caller]);
      expect(to[node]).toBeLessThanOrEqual(to[caller] + 1e-12);
    });
    // If one side is drawn on the scale of the union, some room remains.
    expect(layOut(nodes, nodes.total, 460).to[5]).toBeCloseTo(200 / 460, 12);
  });
  test("have a sign, not only a colour", () => {
    expect([0.032, -0.0051, 0].map(changed)).toEqual(["▲ 3.2 pp", "▼ 0.51 pp", "no change"]);
  });
});

describe("a table of calls", () => {
  const list = calleesOf(nodes);
  test("is sorted by weight and contains callees of expanded calls", () => {
    expect(callRows(list, new Set()).map(({ node }) => node)).toEqual([1, 4]);
    expect(callRows(list, new Set([1])).map(({ node, level, opens }) => [node, level, opens])).toEqual([
      [1, 0, true],
      [3, 1, false],
      [2, 1, false],
      [4, 0, false],
    ]);
  });
  test("is initially expanded along most of the weight", () => {
    expect([...hotPath(nodes, list)]).toEqual([1]);
    expect([...hotPath({ ...nodes, total: [] }, [])]).toEqual([]);
  });
});

test("frames have a module and a function", () => {
  expect(["a.exe!main", "a.exe+0x12", "0xfffff801"].map(moduleOf)).toEqual(["a.exe", "a.exe", "0xfffff801"]);
  expect(["a.exe!main", "a.exe+0x12", "a.exe!?"].map(functionOf)).toEqual(["main", "a.exe+0x12", "a.exe"]);
});
