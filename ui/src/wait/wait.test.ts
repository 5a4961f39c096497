import { describe, expect, test } from "vitest";
import type { Evidence, StoryEvent, Verdict } from "../api/types";
import { threadName } from "./thread_name";
import { ordered, partsOf, stepName } from "./story";

function step(kind: StoryEvent["kind"], at_ns: number, until_ns: number | null = null): StoryEvent {
  return {
    kind,
    at_ns,
    until_ns,
    sentence: "",
    cpu: null,
    thread: null,
    wait_reason: null,
    state: null,
    priority: null,
    rank: null,
    stack: [],
    evidence: null,
  };
}

describe("the parts of a wait", () => {
  test("are waiting, ready and running", () => {
    const story = [step("switched_out", 10), step("readied", 30), step("waited_behind", 30, 90), step("ran", 90, 95)];
    expect(partsOf(story)).toEqual([
      { kind: "waiting", from_ns: 10, to_ns: 30 },
      { kind: "ready", from_ns: 30, to_ns: 90 },
      { kind: "running", from_ns: 90, to_ns: 95 },
    ]);
  });

  test("of a thread that lost its CPU are only ready time", () => {
    const story = [step("switched_out", 10), step("waited_behind", 10, 90), step("ran", 90)];
    expect(partsOf(story)).toEqual([{ kind: "ready", from_ns: 10, to_ns: 90 }]);
  });

  test("are only the known ones", () => {
    expect(partsOf([])).toEqual([]);
    expect(partsOf([step("switched_out", 10)])).toEqual([]);
    // The wait lasts until the trace ends.
    expect(partsOf([step("switched_out", 10, 40)])).toEqual([{ kind: "waiting", from_ns: 10, to_ns: 40 }]);
    expect(partsOf([step("switched_out", 10), step("ran", 40, null)])).toEqual([
      { kind: "waiting", from_ns: 10, to_ns: 40 },
    ]);
  });
});

test("a thread that waits for an idle CPU does not wait behind others", () => {
  const evidence = (rows: Evidence["rows"]): Evidence => ({
    title: "Threads that ran instead",
    query: "",
    columns: [{ name: "process", label: "process", unit: "none" }],
    rows,
  });
  expect(stepName({ ...step("waited_behind", 0, 9), evidence: evidence([["a.exe (4)"]]) })).toBe(
    "Waited behind others",
  );
  expect(stepName({ ...step("waited_behind", 0, 9), evidence: evidence([]) })).toBe("Waited for a CPU");
  expect(stepName(step("ran", 0, 9))).toBe("Ran");
});

test("theories with the verdict for come first, by explained time", () => {
  const verdict = (theory: string, judgement: Verdict["judgement"], explains_ns?: number): Verdict => ({
    theory,
    name: "",
    question: "",
    judgement,
    because: "",
    explains_ns,
  });
  const theories = [
    verdict("a", "against", 9),
    verdict("b", "for", 1),
    verdict("c", "not_recorded"),
    verdict("d", "for", 5),
  ];
  expect(ordered(theories).map(({ theory }) => theory)).toEqual(["d", "b", "c", "a"]);
});

test("the name of a thread has its id, name and process", () => {
  expect(threadName({ id: 7, row: 1, name: null, process: "a.exe (4)" })).toBe("thread 7 of a.exe (4)");
  expect(threadName({ id: 7, row: 1, name: "Main", process: "a.exe (4)" })).toBe("thread 7 “Main” of a.exe (4)");
  expect(threadName({ id: 7, row: null, name: null, process: null })).toBe("thread 7 of an unknown process");
});
