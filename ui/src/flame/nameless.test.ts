import { expect, test } from "vitest";
import { nameless } from "./nameless";
import { stackTitle } from "./stack_title";

test("modules without names of functions are counted once", () => {
  expect(nameless(["ntdll.dll!?", "a.exe!main", "ntdll.dll!?", "b.dll!?"])).toEqual({
    modules: 2,
    examples: ["ntdll.dll", "b.dll"],
  });
  expect(nameless(["a.exe!main", "what?"]).modules).toBe(0);
});

test("columns of stacks have titles in words", () => {
  expect(stackTitle("readying_stack_id", "cpu_runs")).toBe("Ready Thread Stack");
  expect(["stack_id", "wait_stack_id", "constructor"].map((column) => stackTitle(column, "samples"))).toEqual([
    "Stack",
    "Wait stack",
    "Constructor",
  ]);
});
