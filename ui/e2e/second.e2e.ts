// Ways to a graph, from a finding or from a name. The tests are about the common time axis, the palette, menus, lanes,
// stacks, SQL and kept workspaces.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { content, isDrawn, launch, link, screenOf, tableOf, watch, type Watched } from "./browser";
import { Folder, open, sql, type Server } from "./laglab";

let folder: Folder;
let browser: Browser;
let trace: string;
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
  trace = folder.simulate("rank-stall");
});
afterAll(async () => {
  await browser.close();
  folder.remove();
});

// The published story of this scenario: thread 268 of LockApp.exe is readied at 30.333 s and runs at 49.827 s.
const [READIED, RAN] = [30.333, 49.827];

const analysis = (panels: object[], more: object = {}) => ({
  page: "analysis",
  traces: [0],
  tabs: [{ name: "Test", panels }],
  tab: 0,
  ...more,
});
const runs = (columns: string[], graph: object, more: object = {}) => ({
  view: { table: "cpu_runs", columns, graph, filter: [{ column: "thread_id", not_in: [0] }] },
  title: "Runs",
  ...more,
});
const byProcess = runs(["process", "thread", "|", "rows", "time:sum", "ready_ns:max"], {
  kind: "timeline",
  measure: "time",
  by: "process",
  as: "stacked",
});
const table = (page: Page) => tableOf(page, 'section[aria-label="Runs"]');

describe("one trace", () => {
  let server: Server;
  let seen: Watched;
  beforeAll(async () => {
    server = await open([trace], folder.folder("home-second"));
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    content(seen);
    await seen.close();
  });

  test("the axis is exactly over the plots, and findings are brackets at their times", async () => {
    for (const screen of [{ page: "overview", traces: [0] }, analysis([byProcess])]) {
      seen = await watch(browser, link(server.address, screen));
      const { page } = seen;
      const bracket = page.getByRole("group", { name: "Findings and notes over time" }).getByRole("button").first();
      await bracket.waitFor();
      const finding = page
        .getByRole("group", { name: "Findings and notes over time" })
        .getByRole("button", { name: /^1 Thread 268/ });
      await page.locator(".u-over").first().waitFor();
      const box = async (selector: string) => (await page.locator(selector).first().boundingBox())!;
      // Plots get their size after their first answer.
      await expect
        .poll(async () => Math.abs((await box(".time .axis")).x - (await box(".u-over")).x))
        .toBeLessThan(1.5);
      const [axis, plot, found] = [await box(".time .axis"), await box(".u-over"), (await finding.boundingBox())!];
      expect(Math.abs(axis.width - plot.width)).toBeLessThan(2);
      const at = (seconds: number) => plot.x + (seconds / 60) * plot.width;
      expect(Math.abs(found.x - at(READIED))).toBeLessThan(2);
      expect(Math.abs(found.x + found.width - at(RAN))).toBeLessThan(3);
      if (screen.page === "overview") {
        content(seen);
        await seen.close();
      }
    }
  });

  test("a finding is explained with the lanes of all CPUs", async () => {
    seen = await watch(browser, server.address);
    const { page } = seen;
    const finding = page.locator("[data-finding=long-waits]").first();
    await finding.getByText("Explain").waitFor();
    await finding.click();
    const story = page.getByRole("complementary", { name: "One wait, explained" });
    const lanes = story.getByRole("figure", { name: "The wait as lanes" });
    await lanes.waitFor();
    await expect.poll(() => isDrawn(page, "aside figure .lanes")).toBe(true);
    await lanes.getByText("was ready", { exact: true }).waitFor();
    // chrome.exe used most of the CPU time in the wait.
    await lanes.getByText("chrome.exe (144)").waitFor();
  });

  test("the palette finds processes, graphs by names of WPA, times and actions, by keyboard only", async () => {
    seen = await watch(browser, server.address);
    const { page } = seen;
    await page.getByRole("figure").first().waitFor();
    const field = page.getByRole("combobox", { name: /^Find graphs/ });
    const selected = page.getByRole("listbox").getByRole("option", { selected: true });
    await page.keyboard.press("Control+k");
    await field.fill("lockapp");
    await page.getByRole("option", { name: /Process.*LockApp\.exe \(100\)/ }).waitFor();
    while (!(await selected.innerText()).includes("rows of CPU Usage")) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    const panel = page.getByRole("region", { name: /^LockApp\.exe \(100\)/ });
    await panel.waitFor();
    await expect
      // The kept workspace of another test may have more panels.
      .poll(async () => (await tableOf(page, 'section[aria-label^="LockApp.exe (100)"]')).rows.map(([name]) => name))
      .toEqual(["LockApp.exe (100)"]);
    // A name of Windows Performance Analyzer.
    await page.keyboard.press("Control+k");
    await field.fill("precise timeline thread");
    await page.getByRole("option", { name: /States of threads/ }).waitFor();
    // A time.
    await field.fill("30.333 s");
    await expect.poll(() => selected.innerText()).toContain("Go to 30.333 s");
    await page.keyboard.press("Enter");
    const [from, to] = screenOf(page)["range"] as [number, number];
    expect((from + to) / 2).toBeCloseTo(30.333e9, -4);
    // The key `w` zooms in, `d` moves to the right, and `1` shows the overview.
    await page.locator("body").press("w");
    await expect.poll(() => (screenOf(page)["range"] as [number, number])[0]).toBeGreaterThan(from);
    const [start] = screenOf(page)["range"] as [number, number];
    await page.keyboard.press("d");
    await expect.poll(() => (screenOf(page)["range"] as [number, number])[0]).toBeGreaterThan(start);
    await page.keyboard.press("1");
    await expect.poll(() => screenOf(page)["page"]).toBe("overview");
  });

  test("the list of graphs is used by keys, and the new graph gets the focus", async () => {
    seen = await watch(browser, link(server.address, analysis([])));
    const { page } = seen;
    await page.getByText("Graphs that fit the findings").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("cpu usage precise utilization process");
    await page.keyboard.press("Enter");
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label")))
      .toBe("Utilization by process, thread");
  });

  test("the right button opens a menu of the series and the time, and selects nothing", async () => {
    seen = await watch(browser, link(server.address, analysis([byProcess])));
    const { page } = seen;
    await page.locator("regular-table tbody td").first().waitFor();
    const plot = (await page.locator(".u-over").first().boundingBox())!;
    const [x, y] = [plot.x + plot.width * 0.7, plot.y + plot.height - 8];
    await page.mouse.move(x, y);
    await page.mouse.click(x + 1, y, { button: "right" });
    const menu = page.getByRole("menu");
    await menu.getByRole("menuitem", { name: /^Only “.*”, in all graphs/ }).waitFor();
    expect(await page.locator("tr.selected").count()).toBe(0);
    await menu.getByRole("menuitem", { name: /^Note at/ }).click();
    await page.getByRole("textbox", { name: "Note" }).fill("who is this?");
    await page.keyboard.press("Enter");
    const notes = page.getByRole("group", { name: "Findings and notes over time" });
    await notes.getByRole("button", { name: "who is this?" }).waitFor();
    const [note] = screenOf(page)["notes"] as { range: [number, number] }[];
    expect(note.range[0] / 1e9).toBeCloseTo(42, 0);
  });

  test("lanes of threads show that the thread of LockApp.exe was ready and did not run", async () => {
    const lanes = runs(["process", "thread", "|", "rows", "ready_ns:max"], {
      kind: "timeline",
      measure: "time",
      by: "thread",
      as: "lanes",
    });
    const only = { ...lanes, view: { ...lanes.view, filter: [{ column: "thread_id", is: ["268"] }] } };
    seen = await watch(browser, link(server.address, analysis([only], { range: [31e9, 49e9] })));
    const { page } = seen;
    const names = page.getByRole("list", { name: "Lanes" }).getByRole("listitem");
    await expect.poll(() => names.count()).toBe(1);
    const rows = page.getByRole("application", { name: /1 lanes/ });
    await rows.focus();
    await page.keyboard.press("ArrowRight");
    await page.getByText(/ran 0\.00 %, was ready 100 %, waited 0\.00 %/).waitFor();
    await page.keyboard.press("Enter");
    await page
      .getByRole("complementary", { name: "One wait, explained" })
      .getByText(/thread 268/)
      .first()
      .waitFor();
  });

  test("a stack is a column of groups, and the last groups open into their rows", async () => {
    const stacks = runs(["process", "stack_id", "|", "rows", "waits_ns:sum"], { kind: "none" });
    seen = await watch(browser, link(server.address, analysis([stacks])));
    const { page } = seen;
    await page.locator("regular-table td.closed").first().waitFor();
    expect((await table(page)).heads[1]).toBe("New Thread Stack");
    const calls = async () => (await table(page)).rows.filter((row) => row[1] !== "");
    await page
      .locator("regular-table td.closed")
      .first()
      .click({ position: { x: 8, y: 8 } });
    await expect.poll(async () => (await calls()).length).toBeGreaterThan(0);
    const [outermost] = await calls();
    expect(outermost[1]).toMatch(/!|\+0x/);
    // If a table has no column of stacks, single rows are below its groups.
    await page.goto(link(server.address, analysis([byProcess])));
    await page.reload();
    await page.locator("regular-table td.closed").first().waitFor();
    await page.getByLabel("Find in the first column").fill("lockapp");
    await expect.poll(async () => (await table(page)).rows.length).toBe(1);
    await page
      .locator("regular-table td.closed")
      .first()
      .click({ position: { x: 8, y: 8 } });
    await expect.poll(async () => (await table(page)).rows.length).toBeGreaterThan(1);
    const threads = (await table(page)).rows.length;
    await page
      .locator("regular-table td.closed")
      .first()
      .click({ position: { x: 8, y: 8 } });
    await expect.poll(async () => (await table(page)).rows.length).toBeGreaterThan(threads);
    expect((await table(page)).rows.some(([, name]) => /^at \d+\.\d+ s$/.test(name))).toBe(true);
  });

  test("the border between graph and table moves, and opening a menu moves nothing", async () => {
    seen = await watch(browser, link(server.address, analysis([byProcess])));
    const { page } = seen;
    await page.locator("regular-table tbody td").first().waitFor();
    const height = async (selector: string) => (await page.locator(selector).first().boundingBox())!.height;
    const before = [await height(".graph"), await height("section .table")];
    await page.getByRole("button", { name: "More of Runs" }).click();
    expect([await height(".graph"), await height("section .table")]).toEqual(before);
    await page.keyboard.press("Escape");
    await page.getByRole("separator", { name: /^Height of the graph/ }).focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(async () => (await height(".graph")) - before[0]).toBeCloseTo(20, 0);
  });

  test("SQL: examples, schema, formatted times that lead to the graphs, kept history", async ({ skip }) => {
    if (sql(trace, "SELECT 1") === null) skip("this build has no SQL");
    seen = await watch(browser, link(server.address, { page: "sql", traces: [0] }));
    const { page } = seen;
    const nav = page.getByRole("navigation", { name: "Tables and queries" });
    await nav.getByRole("button", { name: "Longest times without a CPU" }).click();
    const first = page.getByRole("region", { name: "Result" }).locator("tbody tr").first();
    await first.getByText("LockApp.exe (100)").waitFor();
    await first.getByText("19.493 s").waitFor();
    await first.getByRole("button", { name: /^30\.333/ }).click();
    await expect.poll(() => screenOf(page)["page"]).toBe("analysis");
    const [from, to] = screenOf(page)["selection"] as [number, number];
    expect([from / 1e9, to / 1e9].map((time) => time.toFixed(3))).toEqual([READIED.toFixed(3), RAN.toFixed(3)]);
    await page.keyboard.press("3");
    await page.getByRole("button", { name: "Save query …" }).click();
    await page.getByRole("textbox", { name: "Name of the query" }).fill("waits");
    await page.keyboard.press("Enter");
    await nav.getByLabel("Find in the schema").fill("cpu_by_process");
    await nav.getByText("cpu_by_process", { exact: true }).waitFor();
    // Another page of the same user has the history and the saved query.
    await expect
      .poll(async () => {
        const kept = (await (await fetch(`${server.address}api/kept/queries`)).json()) as { saved: { name: string }[] };
        return kept?.saved?.map(({ name }) => name);
      })
      .toEqual(["waits"]);
    await page.reload();
    await nav.getByRole("button", { name: "waits", exact: true }).waitFor();
  });
});

test("a workspace is kept for the same traces, and a saved view opens with --view", async () => {
  const home = folder.folder("home-workspace");
  let server = await open([trace], home);
  let seen = await watch(browser, link(server.address, analysis([byProcess], { range: [20e9, 40e9] })));
  const view = join(folder.path, "mine.json");
  try {
    const { page } = seen;
    await page.locator("regular-table tbody td").first().waitFor();
    await page.locator("body").press("n");
    await page.getByRole("textbox", { name: "Note" }).fill("look here");
    await page.keyboard.press("Enter");
    let workspace: string | undefined;
    const kept = async () => {
      const requests = () => performance.getEntriesByType("resource").map(({ name }) => name);
      workspace ??= (await page.evaluate(requests)).find((name) => name.includes("api/kept/workspace-"));
      return workspace && (await (await fetch(workspace)).text());
    };
    await expect.poll(kept).toContain("look here");
    // When the page is left, the workspace is kept at once, without the usual delay.
    await page.locator("body").press("n");
    await page.getByRole("textbox", { name: "Note" }).fill("and here");
    await page.keyboard.press("Enter");
    const left = page.url();
    await page.goto("about:blank");
    await expect.poll(kept).toContain("and here");
    await page.goto(left);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save view" }).click(),
    ]);
    writeFileSync(view, readFileSync(await download.path()));
    content(seen);
  } finally {
    await seen.close();
    await server.stop();
  }
  const restored = async (options: string[]) => {
    server = await open([trace, ...options], options.length > 0 ? folder.folder("home-other") : home);
    seen = await watch(browser, server.address);
    try {
      await seen.page.getByRole("navigation", { name: "Pages" }).getByText("Analysis").click();
      await seen.page.getByRole("region", { name: "Runs" }).waitFor();
      await seen.page.getByRole("button", { name: "look here" }).waitFor();
      await seen.page.getByLabel("Shown from").waitFor();
      expect(await seen.page.getByLabel("Shown from").inputValue()).toMatch(/^20\.0+ s$/);
      content(seen);
    } finally {
      await seen.close();
      await server.stop();
    }
  };
  await restored([]);
  await restored(["--view", view]);
});

test("several traces: histograms have the same axes, lie over each other, and tables are joined", async () => {
  const server = await open(
    [folder.simulate("dpc-flood-no-ids", "3s"), folder.simulate("healthy", "2s")],
    folder.folder("home-compare"),
  );
  const graph = { kind: "histogram", measure: "duration_ns" };
  const view = { table: "interrupts", columns: ["module", "|", "rows", "duration_ns:sum"], graph, filter: [] };
  const screen = analysis([{ view, title: "DPCs" }], { traces: [0, 1] });
  const seen = await watch(browser, link(server.address, screen));
  try {
    const { page } = seen;
    await expect.poll(() => isDrawn(page, ".trace:nth-child(2) .histogram")).toBe(true);
    await page.getByRole("button", { name: "overlaid" }).click();
    await page.getByRole("list", { name: "Traces" }).getByRole("listitem").nth(1).waitFor();
    await page.getByRole("button", { name: "joined table" }).click();
    const joined = page.getByRole("region", { name: "Joined table of DPCs" });
    await joined.locator("tbody tr").nth(1).waitFor();
    // The row of totals must show the total of each trace.
    const totals = await page.evaluate(async () => {
      const of = async (trace: number) => {
        const response = await fetch(`api/traces/${trace}/pivot`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ table: "interrupts", aggregates: ["rows"], first: 1 }),
        });
        return ((await response.json()) as { totals: number[] }).totals[0];
      };
      return [await of(0), await of(1)];
    });
    await joined.getByRole("button", { name: /^Δ/ }).waitFor();
    await page.getByRole("combobox", { name: /^value/ }).selectOption("rows");
    const cells = joined.locator("tbody tr.total td");
    await expect.poll(() => cells.nth(0).innerText()).toBe(totals[0].toLocaleString("en"));
    expect(await cells.nth(1).innerText()).toBe(totals[1].toLocaleString("en"));
    content(seen);
  } finally {
    await seen.close();
    await server.stop();
  }
});
