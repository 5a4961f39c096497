import { expect, test } from "vitest";
import type { TraceFacts } from "../api/types";
import { firstScreen } from "./screen";
import { isWorthKeeping, readStored, stored, workspaceName } from "./workspace";

const trace = (name: string, size_bytes = 1) => ({ name, size_bytes, start_utc: "2026", only: null }) as TraceFacts;

test("a workspace belongs to its recordings", () => {
  expect(workspaceName([trace("a.etl")])).toBe(workspaceName([trace("a.etl")]));
  const names = [[trace("a.etl")], [trace("b.etl")], [trace("a.etl", 2)], [trace("a.etl"), trace("b.etl")]];
  expect(new Set(names.map(workspaceName)).size).toBe(4);
  // The server accepts only these characters.
  expect(workspaceName([trace("../ä\u202e")])).toMatch(/^[a-z0-9-]{1,64}$/);
});

test("a stored workspace is read again, without the open explanation", () => {
  const screen = {
    ...firstScreen([0]),
    notes: [{ trace: 0, range: [1, 5] as [number, number], text: "here" }],
    wait: { trace: 0, thread_row: 1, thread_id: null, at_ns: 5 },
  };
  const kept = JSON.parse(JSON.stringify(stored([trace("a.etl")], screen))) as unknown;
  expect(readStored(kept, [0], false)).toEqual({ ...screen, wait: null });
});

test("other documents are refused, and hostile parts are ignored", () => {
  for (const document of [null, 7, [], {}, { kind: "laglab view" }, { kind: "other", screen: {} }])
    expect(readStored(document, [0], false)).toBeNull();
  const odd = { kind: "laglab view", screen: { page: "nowhere", tabs: 7, notes: [{ range: [9, 1] }], traces: [99] } };
  expect(readStored(odd, [0], false)).toMatchObject({ page: "overview", traces: [0], notes: [] });
});

test("an untouched screen is not kept", () => {
  expect(isWorthKeeping(firstScreen([0]))).toBe(false);
  expect(isWorthKeeping({ ...firstScreen([0]), query: "SELECT 1" })).toBe(true);
});
