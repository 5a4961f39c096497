import { expect, test } from "vitest";
import type { Evidence } from "../api/types";
import { longestWait, momentOf } from "./moment";

const evidence = (...names: string[]): Evidence => ({
  title: "",
  query: "",
  columns: names.map((name) => ({ name, label: name, unit: "none" })),
  rows: [],
});

test("a row about a wait has the middle of the wait", () => {
  expect(momentOf(evidence("process", "thread_id", "ready_from_ns", "start_ns"), ["a.exe (4)", 268, 30, 49])).toEqual({
    thread_id: 268,
    at_ns: 39,
  });
});

test("a step or a run has its start", () => {
  expect(momentOf(evidence("leg", "thread_id", "from_ns", "to_ns"), [2, 264, 11, 30])).toEqual({
    thread_id: 264,
    at_ns: 11,
  });
  expect(momentOf(evidence("thread_id", "start_ns"), [7, 5])).toEqual({ thread_id: 7, at_ns: 5 });
  // The thread was still ready when the trace ended.
  expect(momentOf(evidence("thread_id", "ready_from_ns", "start_ns"), [7, 30, null])).toEqual({
    thread_id: 7,
    at_ns: 30,
  });
});

test("a row without a thread or a time has no moment", () => {
  expect(momentOf(evidence("process", "start_ns"), ["a.exe (4)", 5])).toBeNull();
  expect(momentOf(evidence("thread_id", "cpu_ns"), [7, 5])).toBeNull();
  expect(momentOf(evidence("thread_id", "start_ns"), [null, 5])).toBeNull();
});

test("only findings about waits have a longest wait", () => {
  const finding = {
    theory: "long-waits",
    severity: "problem",
    sentence: "",
    delay: null,
    during: null,
    weighed: [],
    remedies: [],
    doubts: [],
    sources: [],
    evidence: [{ ...evidence("thread_id", "start_ns"), rows: [[7, 5]] }],
  } as const;
  const found = {
    ...finding,
    evidence: [...finding.evidence],
    weighed: [],
    remedies: [],
    doubts: [],
    sources: [],
  } as unknown as Parameters<typeof longestWait>[0];
  expect(longestWait(found)).toEqual({ thread_id: 7, at_ns: 5 });
  expect(longestWait({ ...found, theory: "busy-waiting" })).toBeNull();
  expect(longestWait({ ...found, evidence: [] })).toBeNull();
});
