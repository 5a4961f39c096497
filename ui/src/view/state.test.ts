import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Session } from "../api/types";
import { screenOf } from "./fragment";

/** Replaces the browser's history by a fake one. Its entries have states and addresses. */
function browser() {
  const entries: { state: unknown; hash: string }[] = [{ state: null, hash: "" }];
  let at = 0;
  let popped: ((event: { state: unknown }) => void) | undefined;
  const session: Session = {
    version: "0",
    sql: false,
    comparison: false,
    view: null,
    traces: [
      {
        id: 0,
        name: "a.etl",
        files: [],
        simulated: true,
        system: null,
        machine: null,
        cpu: null,
        cpus: 8,
        start_utc: null,
        duration_ns: 60e9,
        range: [0, 60e9],
        events: 1,
        size_bytes: 1,
        warnings: [],
        complete: true,
        only: null,
      },
    ],
  };
  vi.stubGlobal("fetch", (path: string) =>
    Promise.resolve(new Response(JSON.stringify(path === "api/session" ? session : []))),
  );
  vi.stubGlobal("location", {
    get hash() {
      return entries[at].hash;
    },
  });
  vi.stubGlobal("history", {
    pushState: (state: unknown, _: string, hash: string) => {
      entries.splice(at + 1);
      entries.push({ state, hash });
      at += 1;
    },
    replaceState: (state: unknown, _: string, hash?: string) =>
      (entries[at] = { state, hash: hash ?? entries[at].hash }),
  });
  vi.stubGlobal("addEventListener", (_: string, listener: typeof popped) => (popped = listener));
  return {
    entries,
    go: (by: number) => {
      at += by;
      popped!({ state: entries[at].state });
    },
  };
}

let page: typeof import("./state.svelte").page;
let outside: ReturnType<typeof browser>;
beforeEach(async () => {
  vi.resetModules();
  vi.useFakeTimers();
  outside = browser();
  ({ page } = await import("./state.svelte"));
  await page.start();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
const shown = (entry: number) => screenOf(outside.entries[entry].hash, [0])!;

test("every change is a step in history", () => {
  page.zoomTo([10e9, 20e9]);
  page.select([12e9, 13e9]);
  expect(outside.entries).toHaveLength(3);
  outside.go(-1);
  expect([page.screen.range, page.screen.selection]).toEqual([[10e9, 20e9], null]);
  outside.go(-1);
  expect(page.screen.range).toBeNull();
  expect([page.history.at, page.history.last]).toEqual([0, 2]);
  outside.go(2);
  expect(page.screen.selection).toEqual([12e9, 13e9]);
});

test("panning is one step with the address of its end", () => {
  page.zoomTo([0, 10e9]);
  vi.advanceTimersByTime(2000);
  for (let step = 0; step < 20; step++) page.pan(0.1);
  vi.advanceTimersByTime(300);
  expect(outside.entries).toHaveLength(3);
  expect(shown(2).range).toEqual([20e9, 30e9]);
  expect(shown(1).range).toEqual([0, 10e9]);
});

test("a step right after panning keeps the end of panning in history", () => {
  page.zoomTo([0, 10e9]);
  vi.advanceTimersByTime(2000);
  page.pan(0.1);
  page.pan(0.1);
  page.select([5e9, 6e9]);
  expect([shown(2).range, shown(2).selection]).toEqual([[2e9, 12e9], null]);
  expect(shown(3).selection).toEqual([5e9, 6e9]);
});

test("a view is added to the current tab, and removed", () => {
  page.addPanel({ table: "cpu_runs", columns: ["process", "|", "rows"], graph: { kind: "none" } }, "One");
  expect([page.screen.page, page.panels.length]).toEqual(["analysis", 1]);
  page.addTab("Two");
  expect(page.panels).toEqual([]);
  page.closeTab(1);
  expect(page.panels).toHaveLength(1);
  page.closePanel(0);
  expect(page.panels).toEqual([]);
});

test("a change that the user makes while the workspace is read wins", async () => {
  const { stored } = await import("./workspace");
  const { firstScreen } = await import("./screen");
  const traces = page.session!.traces;
  let answer: (response: Response) => void = () => undefined;
  const first = vi.mocked(fetch);
  vi.stubGlobal("fetch", (path: string) =>
    path.startsWith("api/kept/") ? new Promise<Response>((resolve) => (answer = resolve)) : first(path),
  );
  vi.resetModules();
  const { page: other } = await import("./state.svelte");
  const started = other.start();
  await vi.waitFor(() => expect(other.session).not.toBeNull());
  other.zoomTo([10e9, 20e9]);
  const kept = stored(traces, { ...firstScreen([0]), filter: [{ column: "cpu", is: ["1"] }] });
  answer(new Response(JSON.stringify(kept)));
  await started;
  expect([other.screen.range, other.screen.filter]).toEqual([[10e9, 20e9], []]);
});
