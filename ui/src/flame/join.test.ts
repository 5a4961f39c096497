import { expect, test } from "vitest";
import type { FlameAnswer } from "../api/types";
import { joined } from "./join";
import { pathOf } from "./walk";

/**
 * Builds a call tree. Keys are paths with callers first. Values are the weights of calls without their
 * callees.
 */
function tree(weights: Record<string, number>): FlameAnswer {
  const paths = Object.keys(weights).sort();
  const frames = [...new Set(paths.map((path) => path.split("/").at(-1)!))];
  const below = (path: string) => paths.filter((other) => other === path || other.startsWith(`${path}/`));
  const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  return {
    total,
    compared_total: null,
    known: 1,
    cut: 0,
    unit: "ns",
    sql: null,
    frames,
    nodes: {
      parent: paths.map((path) => (path.includes("/") ? paths.indexOf(path.slice(0, path.lastIndexOf("/"))) : null)),
      frame: paths.map((path) => frames.indexOf(path.split("/").at(-1)!)),
      self: paths.map((path) => weights[path]),
      total: paths.map((path) => below(path).reduce((sum, other) => sum + weights[other], 0)),
      compared: null,
    },
  };
}

test("calls of two traces are merged by their path", () => {
  const one = tree({ main: 1, "main/work": 5, "main/work/wait": 2, idle: 4 });
  const other = tree({ main: 0, "main/wait": 7, "main/work": 3, start: 1, "start/work": 9 });
  const both = joined(one, other);
  const paths = both.nodes.parent.map((_, node) => pathOf(both.frames, both.nodes, node).join("/"));
  const weights = Object.fromEntries(
    paths.map((path, node) => [path, [both.nodes.total[node], both.nodes.compared![node]]]),
  );
  expect(weights).toEqual({
    main: [8, 10],
    "main/work": [7, 3],
    "main/work/wait": [2, 0],
    "main/wait": [0, 7],
    idle: [4, 0],
    start: [0, 10],
    "start/work": [0, 9],
  });
  // The calls are in depth-first order, so callers precede callees.
  expect(both.nodes.parent.every((parent, node) => parent === null || parent < node)).toBe(true);
  expect([both.total, both.compared_total]).toEqual([12, 20]);
});

test("a trace without stacks adds only weights of 0", () => {
  const one = tree({ main: 1, "main/work": 5 });
  expect(joined(one, tree({})).nodes).toEqual({ ...one.nodes, compared: [0, 0] });
});
