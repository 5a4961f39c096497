// The page in a browser, with the program and simulated traces.

import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { content, isDrawn, launch, link, mixed, screenOf, tableOf, watch, type Watched } from "./browser";
import { Folder, open, run, sql, type Server } from "./laglab";

const BAR = "\u200b";
let folder: Folder;
let browser: Browser;
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  folder.remove();
});

/** Returns the session of the server at an address. */
async function session(address: string): Promise<{ sql: boolean; traces: { id: number; name: string }[] }> {
  return (await fetch(`${address}api/session`)).json() as Promise<{
    sql: boolean;
    traces: { id: number; name: string }[];
  }>;
}

/** Returns a screen of one tab with these panels. */
function analysis(panels: object[], more: object = {}): object {
  return { page: "analysis", traces: [0], tabs: [{ name: "Test", panels }], tab: 0, ...more };
}
const panel = (table: string, columns: string[], graph: object, title: string, more: object = {}) => ({
  view: { table, columns, graph, filter: [] },
  title,
  ...more,
});

/** Waits until `fits` is true for the rows of a panel's table, and returns the rows. */
async function rows(
  page: Page,
  title: string,
  fits: (rows: string[][]) => boolean = (rows) => rows.length > 0,
): Promise<string[][]> {
  const selector = `section[aria-label="${title}"]`;
  let found: string[][] = [];
  await expect.poll(async () => fits((found = (await tableOf(page, selector)).rows)), { interval: 100 }).toBe(true);
  return found;
}
const heads = async (page: Page, title: string) =>
  (await tableOf(page, `section[aria-label="${title}"]`)).heads.map((head) => head.replace(/ [▼▲]$/, ""));

/** Drags a column header, or the golden bar, to the place before another column. Both are given by their indices. */
async function dragHead(page: Page, title: string, from: number, to: number): Promise<void> {
  const cells = page.locator(`section[aria-label="${title}"] regular-table thead tr:first-child th`);
  const [begin, end] = [(await cells.nth(from).boundingBox())!, (await cells.nth(to).boundingBox())!];
  await page.mouse.move(begin.x + begin.width / 2, begin.y + 8);
  await page.mouse.down();
  await page.mouse.move(end.x + 2, end.y + 9, { steps: 8 });
  await page.mouse.up();
}

/** Selects a time range, in seconds, by dragging over the first plot. */
async function dragTime(page: Page, from: number, to: number, range: [number, number]): Promise<void> {
  const plot = page.locator(".u-over").first();
  await plot.scrollIntoViewIfNeeded();
  const box = (await plot.boundingBox())!;
  const at = (time: number) => box.x + ((time - range[0]) / (range[1] - range[0])) * box.width;
  await page.mouse.move(at(from), box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(at((from + to) / 2), box.y + box.height / 2);
  await page.mouse.move(at(to), box.y + box.height / 2);
  await page.mouse.up();
}

const seconds = (text: string | undefined) => {
  const [, number, unit] = /^([\d.,]+) (s|ms|µs|ns)$/.exec(text ?? "") ?? [];
  return Number(number?.replaceAll(",", "")) * { s: 1, ms: 1e-3, µs: 1e-6, ns: 1e-9 }[unit as "s"];
};
const number = (text: string | undefined) => Number(text?.replaceAll(",", ""));

describe("every scenario opens", () => {
  const scenarios = (JSON.parse(run(["simulate", "--list", "--json"])) as { name: string }[]).map(({ name }) => name);
  let server: Server;
  let seen: Watched;
  beforeAll(async () => {
    server = await open(
      scenarios.map((name) => folder.simulate(name, "3s")),
      folder.folder("home-all"),
    );
    seen = await watch(browser, server.address);
  });
  afterAll(async () => {
    await seen.close();
    await server.stop();
  });

  test.each(scenarios)("%s", async (name) => {
    const { traces } = await session(server.address);
    const id = traces.find((trace) => trace.name.startsWith(name) && trace.name.replace(".etl", "") === name)!.id;
    await seen.page.goto(link(server.address, { page: "overview", traces: [id] }));
    await seen.page.getByText("simulated", { exact: true }).waitFor();
    await seen.page
      .locator("section[aria-label=Findings] .findings > :is(ol, p):not(:has-text('Looking'))")
      .first()
      .waitFor();
    const strip = seen.page.locator("figure .graph");
    await strip.first().waitFor();
    await expect.poll(() => isDrawn(seen.page, "figure .graph")).toBe(true);
    content(seen);
  });
});

describe("the analysis of a flood of DPCs", () => {
  let server: Server;
  let seen: Watched;
  let trace: string;
  beforeAll(async () => {
    trace = folder.simulate("dpc-flood-teaming");
    server = await open([trace], folder.folder("home-dpc"));
  });
  afterAll(() => server.stop());
  afterEach(() => seen.close());

  test("utilization by CPU, 20 to 30 s, four CPUs, modules and durations of their DPCs", async () => {
    seen = await watch(browser, link(server.address, analysis([])));
    const { page } = seen;
    await page.getByRole("navigation", { name: "Graphs" }).getByText("All tables").waitFor();
    // Open two graphs from the list.
    const list = page.getByRole("navigation", { name: "Graphs" });
    await list.getByRole("button", { name: "Utilization by CPU", exact: true }).click();
    await rows(page, "Utilization by CPU");
    await list.getByRole("button", { name: /^DPC duration by module, function/ }).click();
    const modules = "DPC duration by module, function";
    await rows(page, modules);

    // Select 20 to 30 s, first with the pointer and then exactly with the fields.
    await dragTime(page, 20, 30, [0, 32]);
    await page.getByText(/^Selected /).waitFor();
    const [from, to] = screenOf(page)["selection"] as [number, number];
    expect(Math.abs(from - 20e9)).toBeLessThan(0.05e9);
    expect(Math.abs(to - 30e9)).toBeLessThan(0.05e9);
    await page.keyboard.press("z");
    await page.getByLabel("Shown from").fill("20");
    await page.getByLabel("Shown from").press("Enter");
    await page.getByLabel("Shown to").fill("30 s");
    await page.getByLabel("Shown to").press("Enter");
    await expect.poll(() => screenOf(page)["range"]).toEqual([20e9, 30e9]);

    // Select CPUs 0, 2, 4 and 6 in the table and filter all graphs by them.
    const byCpu = page.locator('section[aria-label="Utilization by CPU"]');
    await rows(page, "Utilization by CPU", (rows) => rows.length > 6);
    await byCpu.locator("regular-table thead th", { hasText: /^CPU/ }).first().click();
    // Wait until the rows have their new order. Otherwise, a click could meet a row of the old order.
    await rows(page, "Utilization by CPU", (rows) => rows.slice(0, 7).every(([cpu], place) => cpu === `${place}`));
    for (const [place, cpu] of ["0", "2", "4", "6"].entries()) {
      const cell = byCpu.locator("regular-table tbody td.key", { hasText: new RegExp(`^${cpu}$`) }).first();
      await cell.scrollIntoViewIfNeeded();
      await cell.click({ modifiers: place === 0 ? [] : ["Control"], position: { x: 26, y: 8 } });
    }
    await byCpu.getByRole("button", { name: "Only selected" }).click();
    await page.getByRole("list", { name: "Filters of all graphs" }).getByText("CPU: 0, 2, 4, 6").waitFor();
    await rows(page, "Utilization by CPU", (rows) => rows.length === 4);

    // NDIS has nearly all of the time. Published numbers: 163,230 DPCs, 36.8 CPU-seconds.
    const found = await rows(page, modules, (rows) => rows.some(([module]) => /^ndis\.sys/i.test(module)));
    const columns = await heads(page, modules);
    const ndis = found.find(([module]) => /^ndis\.sys/i.test(module))!;
    const truth = JSON.parse(readFileSync(trace.replace(/\.etl$/, ".truth.json"), "utf8")) as object;
    expect(JSON.stringify(truth)).toContain("163230");
    expect(Math.abs(number(ndis[columns.indexOf("Rows")]) - 163_230)).toBeLessThanOrEqual(4);
    expect(Math.abs(seconds(ndis[columns.findIndex((head) => /Duration \(sum\)/.test(head))]) - 36.8)).toBeLessThan(
      0.4,
    );

    // Expand its functions.
    const section = page.locator(`section[aria-label="${modules}"]`);
    await section
      .locator("regular-table tbody td.closed", { hasText: /^ndis\.sys/i })
      .first()
      .click({ position: { x: 8, y: 8 } });
    await rows(page, modules, (rows) => rows.length > found.length);

    // Histogram of the durations, with the 100 µs line.
    await section.getByLabel("Kind of graph").selectOption("histogram");
    await expect.poll(() => isDrawn(page, `section[aria-label="${modules}"] .histogram`)).toBe(true);
    content(seen);
  });
});

describe("the stall by rank", () => {
  let server: Server;
  let seen: Watched;
  let trace: string;
  let withSql = false;
  beforeAll(async () => {
    trace = folder.simulate("rank-stall");
    server = await open([trace], folder.folder("home-rank"));
    withSql = (await session(server.address)).sql;
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    content(seen);
    await seen.close();
  });

  const byThread = panel(
    "cpu_runs",
    ["process", "thread_id", "|", "rows", "cpu_ns:sum", "ready_ns:max", "rank_out"],
    { kind: "timeline", measure: "time", by: "process", as: "stacked" },
    "By thread",
  );
  const byPriority = panel(
    "cpu_runs",
    ["priority", "|", "rows", "cpu_ns:sum"],
    { kind: "timeline", measure: "time", by: "priority", as: "stacked" },
    "By priority",
  );

  test("focus, the thread that did not run, 19.493 s ready, rank 2", async () => {
    const focus = panel(
      "focus",
      ["process", "|", "rows"],
      { kind: "timeline", measure: "time", by: "process", as: "stacked" },
      "Focus",
    );
    seen = await watch(browser, link(server.address, analysis([focus, byThread])));
    const { page } = seen;
    expect((await rows(page, "Focus")).some(([process]) => /^LockApp\.exe/.test(process))).toBe(true);
    const section = page.locator('section[aria-label="By thread"]');
    await section.getByLabel("Find in the first column").fill("lockapp");
    const [lockApp] = await rows(page, "By thread", (rows) => rows.length === 1);
    expect(lockApp[0]).toMatch(/^LockApp\.exe/);
    await section
      .locator("td.closed")
      .first()
      .click({ position: { x: 8, y: 8 } });
    const threads = (await rows(page, "By thread", (rows) => rows.length > 2)).slice(1);
    const columns = await heads(page, "By thread");
    const longest = threads.map((row) => seconds(row[columns.findIndex((head) => /^Ready/.test(head))]));
    expect(Math.abs(Math.max(...longest) - 19.493)).toBeLessThan(0.002);
    // Explain the wait of the thread.
    await section.locator("td.closed").first().click({ button: "right" });
    await page.getByRole("menuitem", { name: "Explain its longest wait" }).click();
    const story = page.getByRole("complementary", { name: "One wait, explained" });
    await story
      .getByText(/19\.49/)
      .first()
      .waitFor();
    expect(await story.innerText()).toMatch(/rank/i);
  });

  test("a finding leads to its evidence", async () => {
    seen = await watch(browser, server.address);
    const { page } = seen;
    const finding = page.locator("[data-finding=long-waits]").first();
    await finding.waitFor();
    expect(await finding.innerText()).toMatch(/19\.49/);
    await finding.click();
    await expect.poll(() => screenOf(page)["page"]).toBe("analysis");
    const [from, to] = screenOf(page)["range"] as [number, number];
    // The wait lasts from 30.333 s to 49.827 s.
    expect(from).toBeLessThan(30.334e9);
    expect(to).toBeGreaterThan(49.826e9);
    expect(to - from).toBeLessThan(40e9);
    await page.locator("section.panel").first().waitFor();
    // The wait is explained. Its thread was ready during the whole selection.
    await page.getByRole("complementary", { name: "One wait, explained" }).getByText("Waited behind others").waitFor();
    await page.getByRole("list", { name: "Series" }).first().getByText("19.493 s").waitFor();
    const top = () => page.locator("section.panel .frame").first().getAttribute("data-top");
    await expect.poll(async () => Number(await top())).toBeCloseTo(1, 6);
    // Evidence without a graph is shown as rows. Rows about a thread link to the explanation of the thread.
    const found = page.getByRole("region", { name: "Finding 1" });
    await found.getByText(/What led to it, step by step/).waitFor();
    const before = JSON.stringify(screenOf(page)["wait"]);
    await found.getByRole("button", { name: "explain" }).last().click();
    await expect.poll(() => JSON.stringify(screenOf(page)["wait"])).not.toBe(before);
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await expect.poll(() => screenOf(page)["page"] ?? "overview").not.toBe("analysis");
  });

  const inView = {
    ...byThread,
    view: {
      ...byThread.view,
      columns: ["process", "|", "rows", "time:sum"],
      filter: [{ column: "thread_id", not_in: [0] }],
    },
  };
  const swatches = (page: Page) =>
    page
      .locator(".legend li")
      .evaluateAll((all) =>
        Object.fromEntries(
          all.map((one) => [
            one.querySelector(".cut")?.textContent ?? "",
            one.querySelector<HTMLElement>(".swatch")?.style.background ?? "",
          ]),
        ),
      );

  test("table and legend show the times within the visible range, in stable colours", async ({ skip }) => {
    seen = await watch(browser, link(server.address, analysis([inView])));
    const { page } = seen;
    await rows(page, "By thread");
    const whole = await swatches(page);
    const [from, to] = [35_000_000_000, 35_010_000_000];
    await page.getByLabel("Shown from").fill(`${from} ns`);
    await page.getByLabel("Shown from").press("Enter");
    await page.getByLabel("Shown to").fill(`${to} ns`);
    await page.getByLabel("Shown to").press("Enter");
    await page.getByText(/ of 29 rows/).waitFor();
    const shown = await rows(page, "By thread", (rows) => rows.length > 5);
    const narrow = await swatches(page);
    const kept = Object.keys(narrow).filter((name) => whole[name]);
    expect(kept.length).toBeGreaterThan(5);
    for (const name of kept) expect(narrow[name], name).toBe(whole[name]);
    const told = sql<{ process: string; ns: number }>(
      trace,
      `SELECT process(process_row) AS process, sum(least(end_ns, ${to}) - greatest(start_ns, ${from})) AS ns FROM cpu_runs WHERE end_ns > ${from} AND start_ns < ${to} AND thread_id <> 0 GROUP BY process_row`,
    );
    if (told === null) return skip("this build has no SQL");
    const legend = await page.locator(".legend li button.name").allInnerTexts();
    for (const { process, ns } of told) {
      const row = shown.find(([name]) => name === process)!;
      expect(seconds(row[3]) / (ns / 1e9), process).toBeCloseTo(1, 3);
      const line = legend.find((text) => text.startsWith(process))!;
      expect(seconds(line.split("\n").at(-1)!.trim()) / (ns / 1e9), `${process} in the legend`).toBeCloseTo(1, 3);
    }
  });

  test("search results have their own counts and totals", async ({ skip }) => {
    seen = await watch(browser, link(server.address, analysis([inView])));
    const { page } = seen;
    await rows(page, "By thread");
    await page.getByLabel("Find in the first column").fill("wpa");
    const shown = await rows(page, "By thread", (rows) => rows.length === 3);
    expect(shown.every(([name]) => name.startsWith("wpa.exe"))).toBe(true);
    const told = sql<{ n: number; ns: number }>(
      trace,
      "SELECT count(*) AS n, sum(cpu_ns) AS ns FROM cpu_runs WHERE process_name(process_row) = 'wpa.exe'",
    );
    if (told === null) return skip("this build has no SQL");
    await page.getByText(`3 groups of ${told[0].n.toLocaleString("en")} rows`).waitFor();
    const total = await page.locator("regular-table thead tr.total th, regular-table thead th.total").allTextContents();
    expect(seconds(total.at(-1)!.trim()) / (told[0].ns / 1e9)).toBeCloseTo(1, 3);
  });

  test("the last event is drawn too", async ({ skip }) => {
    const all = panel(
      "events",
      ["provider", "|", "rows"],
      { kind: "timeline", measure: "rows", by: "provider", as: "stacked" },
      "Events",
    );
    seen = await watch(browser, link(server.address, analysis([all])));
    const shown = await rows(seen.page, "Events");
    const told = sql<{ n: number }>(trace, "SELECT count(*) AS n FROM events");
    if (told === null) return skip("this build has no SQL");
    expect(shown.reduce((sum, row) => sum + number(row[2]), 0)).toBe(told[0].n);
    const legend = await seen.page.locator(".legend li .number").allInnerTexts();
    expect(legend.reduce((sum, text) => sum + number(text), 0)).toBe(told[0].n);
  });

  test("the chain of causes can be followed", async () => {
    seen = await watch(
      browser,
      link(server.address, analysis([byThread], { wait: { trace: 0, thread_row: null, thread_id: null, at_ns: 0 } })),
    );
    const { page } = seen;
    const [found] = await page.evaluate(async () => {
      const response = await fetch("api/traces/0/rows", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          table: "cpu_runs",
          columns: ["thread_id", "start_ns"],
          sort: { column: "ready_ns", descending: true },
          first: 1,
        }),
      });
      return ((await response.json()) as { values: [number, number][] }).values;
    });
    const [thread_id, start] = found;
    await page.goto(
      link(
        server.address,
        analysis([byThread], { wait: { trace: 0, thread_row: null, thread_id, at_ns: start - 1e9 } }),
      ),
    );
    await page.reload();
    const story = page.getByRole("complementary", { name: "One wait, explained" });
    await story
      .getByText(new RegExp(`thread ${thread_id}\\b`))
      .first()
      .waitFor();
    const before = JSON.stringify(screenOf(page)["wait"]);
    await story.locator("button.link, ol button, li button").last().click();
    await expect.poll(() => JSON.stringify(screenOf(page)["wait"])).not.toBe(before);
    await page.keyboard.press("Escape");
    await expect.poll(() => screenOf(page)["wait"]).toBeNull();
  });

  test("one series is isolated, and all are shown again", async () => {
    seen = await watch(browser, link(server.address, analysis([byPriority])));
    const { page } = seen;
    await rows(page, "By priority");
    const legend = page.getByRole("list", { name: "Series" }).getByRole("button", { pressed: true });
    await legend.first().waitFor();
    const all = await legend.count();
    expect(all).toBeGreaterThan(4);
    await page
      .getByRole("list", { name: "Series" })
      .locator("button.name", { hasText: /^\s*8\b/ })
      .first()
      .click({ modifiers: ["Alt"] });
    await expect.poll(() => legend.count()).toBe(1);
    await page.getByRole("button", { name: "Show all" }).click();
    await expect.poll(() => legend.count()).toBe(all);
    // A hidden series stays hidden after a reload.
    await legend.first().click();
    await expect.poll(() => legend.count()).toBe(all - 1);
    await page.reload();
    await expect.poll(() => legend.count()).toBe(all - 1);
  });

  test("columns move across the bar and back, by pointer and by keys", async () => {
    seen = await watch(browser, link(server.address, analysis([byThread])));
    const { page } = seen;
    await rows(page, "By thread");
    expect((await heads(page, "By thread")).slice(0, 3)).toEqual(["New Process", "New Thread Id", BAR]);
    await dragHead(page, "By thread", 1, 3);
    await expect
      .poll(() => heads(page, "By thread").then((all) => all.slice(0, 3)))
      .toEqual(["New Process", BAR, "New Thread Id"]);
    await rows(page, "By thread", (rows) => rows.some((row) => /different/.test(row[2])));
    await dragHead(page, "By thread", 2, 0);
    await expect
      .poll(() => heads(page, "By thread").then((all) => all.slice(0, 3)))
      .toEqual(["New Thread Id", "New Process", BAR]);
    // The graph follows the first key.
    await expect.poll(() => page.getByLabel("Coloured by").inputValue()).toBe("thread_id");
    const head = page.locator("regular-table thead th[data-column=thread_id]").first();
    await head.focus();
    await page.keyboard.press("Alt+ArrowRight");
    await expect
      .poll(() => heads(page, "By thread").then((all) => all.slice(0, 3)))
      .toEqual(["New Process", "New Thread Id", BAR]);
    // Back and forward undo and redo each step.
    for (let step = 0; step < 3; step++) await page.getByRole("button", { name: "Back", exact: true }).click();
    await expect
      .poll(() => heads(page, "By thread").then((all) => all.slice(0, 3)))
      .toEqual(["New Process", "New Thread Id", BAR]);
    await page.getByRole("button", { name: "Forward", exact: true }).click();
    await expect
      .poll(() => heads(page, "By thread").then((all) => all.slice(0, 3)))
      .toEqual(["New Process", BAR, "New Thread Id"]);
  });

  test("a reload restores order, expanded rows, zoom and selection", async () => {
    seen = await watch(browser, link(server.address, analysis([byThread], { range: [27e9, 50e9] })));
    const { page } = seen;
    await rows(page, "By thread");
    await page.locator("regular-table thead th[data-column='cpu_ns:sum']").first().click();
    await expect
      .poll(() => page.locator("regular-table thead th[data-column='cpu_ns:sum']").first().getAttribute("aria-sort"))
      .toBe("descending");
    // Idle threads have the largest total. So when they are on top, the rows are sorted.
    const first = await rows(page, "By thread", (rows) => rows[0]?.[0] === "Idle (0)");
    await page
      .locator("regular-table td.closed")
      .nth(1)
      .click({ position: { x: 8, y: 8 } });
    const opened = await rows(page, "By thread", (rows) => rows.length > first.length || rows[2][0] === "");
    await page
      .locator("regular-table td.key.opened")
      .first()
      .click({ position: { x: 40, y: 8 } });
    await page.getByText(/1 selected/).waitFor();
    await expect.poll(() => JSON.stringify(screenOf(page))).toContain('"selected"');
    await page.reload();
    const again = await rows(page, "By thread", (rows) => rows.length >= 7 && rows.some(([first]) => first === ""));
    expect(again.slice(0, 7)).toEqual(opened.slice(0, 7));
    await page.getByText(/1 selected/).waitFor();
    // The line of the selected row is highlighted.
    await page.locator(".legend li.bright").waitFor();
  });

  test("keys move through time", async () => {
    seen = await watch(browser, link(server.address, analysis([byPriority])));
    const { page } = seen;
    await rows(page, "By priority");
    await page.locator("body").press("+");
    // The last event is at 60 s, within the visible range.
    const range = () => (screenOf(page)["range"] as [number, number] | null)?.map((time) => Math.round(time / 10));
    await expect.poll(range).toEqual([15e8, 45e8]);
    await page.keyboard.press("ArrowRight");
    await expect.poll(range).toEqual([18e8, 48e8]);
    await page.keyboard.press("Home");
    await expect.poll(() => screenOf(page)["range"]).toBeNull();
  });

  test("a click on the graph selects rows, which are highlighted in it", async () => {
    const alone = { ...byPriority, hidden: [0] };
    seen = await watch(browser, link(server.address, analysis([alone], { range: [31e9, 49e9] })));
    const { page } = seen;
    await rows(page, "By priority");
    const box = (await page.locator(".u-over").first().boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 12);
    await page.mouse.move(box.x + box.width / 2 + 1, box.y + box.height - 12);
    await page.mouse.click(box.x + box.width / 2 + 1, box.y + box.height - 12);
    await page.locator("regular-table tr.selected").first().waitFor();
    expect(await page.locator(".legend li.bright").count()).toBe(1);
  });

  test("copies as Markdown and as CSV", async () => {
    seen = await watch(browser, link(server.address, analysis([byPriority])));
    const { page } = seen;
    const shown = await rows(page, "By priority");
    await page.getByRole("button", { name: "Copy ▾" }).click();
    await page.getByRole("menuitem", { name: "Copy as CSV" }).click();
    await page.getByText(/copied as CSV/).waitFor();
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    const [header, first] = csv.split("\r\n");
    expect(header).toBe('New In Pri,Rows,"CPU Usage (sum, ns)"');
    expect(first.split(",")[0]).toBe(shown[0][0]);
    expect(Number(first.split(",")[1])).toBe(number(shown[0][2]));
    await page.getByRole("button", { name: "Copy ▾" }).click();
    await page.getByRole("menuitem", { name: /Copy as Markdown/ }).click();
    await page.getByText(/copied as Markdown/).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^\| New In Pri \| Rows \| CPU Usage/);
  });

  test("presets are saved and deleted", async () => {
    seen = await watch(browser, link(server.address, analysis([byPriority])));
    const { page } = seen;
    await rows(page, "By priority");
    await page.getByRole("button", { name: "More of By priority" }).click();
    await page.getByRole("menuitem", { name: /Save as preset/ }).click();
    await page.getByLabel("Name").fill("Bands <b>of</b> mine");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page
      .getByRole("navigation", { name: "Graphs" })
      .getByRole("button", { name: "Bands <b>of</b> mine", exact: true })
      .waitFor();
    await page.reload();
    await page
      .getByRole("navigation", { name: "Graphs" })
      .getByRole("button", { name: "Bands <b>of</b> mine", exact: true })
      .waitFor();
    await page.getByRole("button", { name: "Delete Bands <b>of</b> mine" }).click();
    await expect.poll(() => page.getByRole("button", { name: "Bands <b>of</b> mine", exact: true }).count()).toBe(0);
  });

  test("a saved report is self-contained", async () => {
    seen = await watch(browser, server.address);
    const { page } = seen;
    await page.locator("[data-finding]").first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as report" }).click(),
    ]);
    const report = readFileSync(await download.path(), "utf8");
    expect(download.suggestedFilename()).toMatch(/^rank-stall.*\.html$/);
    expect(report).toContain("19.49");
    expect(report).not.toMatch(/(\bsrc=|<link[^>]*href=|url\()["']?https?:/);
  });

  test("the table and SQL have equal numbers", async ({ skip }) => {
    seen = await watch(browser, link(server.address, analysis([byPriority])));
    const shown = await rows(seen.page, "By priority");
    const told = sql<{ priority: number; n: number; ns: number }>(
      trace,
      "SELECT priority, count(*) AS n, sum(cpu_ns) AS ns FROM cpu_runs GROUP BY 1",
    );
    if (told === null) return skip("this build has no SQL");
    expect(shown.length).toBeGreaterThan(4);
    for (const [priority, , count, time] of shown) {
      const same = told.find((row) => String(row.priority ?? "unknown") === priority)!;
      expect(number(count), `runs of priority ${priority}`).toBe(same.n);
      // The table shows only five digits.
      expect(Math.abs(seconds(time) - same.ns / 1e9), `time of priority ${priority}`).toBeLessThanOrEqual(
        0.0005 * (same.ns / 1e9),
      );
    }
  });

  test("SQL runs and reports errors", async ({ skip }) => {
    seen = await watch(
      browser,
      link(server.address, {
        page: "sql",
        traces: [0],
        query: "SELECT process, count(*) AS n FROM cpu_runs_named GROUP BY 1 ORDER BY n DESC",
      }),
    );
    if (!withSql) skip("this build has no SQL");
    const { page } = seen;
    const editor = page.getByRole("combobox", { name: /^SQL query/ });
    await page.getByRole("alert").first().waitFor();
    seen.complaints.length = 0; // The browser reports the error response.
    await editor.fill("SELECT process, runs FROM cpu_by_process ORDER BY runs DESC LIMIT 5");
    await editor.press("Control+Enter");
    const told = sql<{ process: string; runs: number }>(
      trace,
      "SELECT process, runs FROM cpu_by_process ORDER BY runs DESC LIMIT 5",
    );
    await page.getByText(told![0].process).first().waitFor();
  });
});

describe("several traces", () => {
  test("are side by side with the same axes", async () => {
    const server = await open(
      [folder.simulate("dpc-flood-no-ids", "3s"), folder.simulate("healthy", "2s")],
      folder.folder("home-two"),
    );
    const usage = panel(
      "cpu_runs",
      ["process_name", "|", "rows", "cpu_ns:sum"],
      { kind: "timeline", measure: "time", by: "process_name", as: "stacked" },
      "Usage",
    );
    const seen = await watch(browser, link(server.address, analysis([usage], { traces: [0, 1] })));
    try {
      await expect.poll(() => isDrawn(seen.page, "section.panel .trace:nth-child(2) .plot")).toBe(true);
      // New answers replace the plots, and a new plot has no size at first. So both plots are measured at the
      // same time.
      const boxes = () =>
        seen.page
          .locator("section.panel .u-over")
          .evaluateAll((plots) => plots.map((plot) => plot.getBoundingClientRect().toJSON() as DOMRect));
      let drawn: DOMRect[] = [];
      const heights = async () => (drawn = await boxes()).map(({ height }) => height > 0);
      await expect.poll(heights).toEqual([true, true]);
      const [one, other] = drawn as [DOMRect, DOMRect];
      expect([one.y, one.height]).toEqual([other.y, other.height]);
      expect(Math.abs(one.width - other.width)).toBeLessThan(2);
      expect(other.x).toBeGreaterThan(one.x + one.width);
      // Both value axes have the same maximum.
      const tops = () =>
        seen.page
          .locator("section.panel .frame")
          .evaluateAll((frames) => frames.map((frame) => (frame as HTMLElement).dataset["top"]));
      await expect.poll(async () => new Set(await tops()).size).toBe(1);
      // The small graphs of the overview also have a common axis.
      await seen.page.getByRole("navigation", { name: "Pages" }).getByText("Overview").click();
      const small = seen.page.getByRole("figure", { name: "Utilization by process, thread" });
      // Graphs appear once their tables are built.
      await expect.poll(() => small.count()).toBe(2);
      await small
        .first()
        .getByText(/% of \d+ CPUs/)
        .waitFor();
      const smallTops = () =>
        small.locator(".frame").evaluateAll((frames) => frames.map((frame) => (frame as HTMLElement).dataset["top"]));
      await expect.poll(async () => new Set(await smallTops()).size).toBe(1);
      // The shorter trace ends before the other.
      await seen.page.getByText(/^healthy.* ends here$/).waitFor();
      content(seen);
    } finally {
      await seen.close();
      await server.stop();
    }
  });
});

describe("hostile traces", () => {
  test("names are text", async () => {
    const trace = join(folder.path, "hostile.etl");
    run(["simulate", join(import.meta.dirname, "hostile.toml"), "-o", trace]);
    const server = await open([trace], folder.folder("home-hostile"));
    const seen = await watch(
      browser,
      link(
        server.address,
        analysis([
          panel(
            "cpu_runs",
            ["process", "thread", "|", "rows", "cpu_ns:sum"],
            { kind: "timeline", measure: "time", by: "process", as: "stacked" },
            "By process",
          ),
        ]),
      ),
    );
    try {
      const { page } = seen;
      await rows(page, "By process", (rows) =>
        rows.some(([name]) => name.startsWith("<img src=x onerror=alert(1)>.exe")),
      );
      await page.locator(".legend").getByText("<img src=x onerror=alert(1)>.exe").first().waitFor();
      await page.locator(".legend").getByText("__proto__").first().waitFor();
      const box = (await page.locator(".u-over").first().boundingBox())!;
      await page.mouse.move(box.x + 200, box.y + 80);
      await page.mouse.move(box.x + 202, box.y + 80);
      await page.locator(".values").waitFor();
      await page.getByRole("navigation", { name: "Pages" }).getByText("Overview").click();
      await page.locator("figure .graph").first().waitFor();
      await page.waitForTimeout(1000);
      expect(await page.locator("img, svg, script:not([src]), b").count()).toBe(0);
      expect(await mixed(page)).toEqual([]);
      content(seen);
    } finally {
      await seen.close();
      await server.stop();
    }
  });

  test("a cut trace opens with a warning", async () => {
    const whole = folder.simulate("healthy", "2s");
    const cut = join(folder.path, "cut.etl");
    copyFileSync(whole, cut);
    truncateSync(cut, Math.floor(statSync(whole).size * 0.6) + 123);
    const server = await open([cut], folder.folder("home-cut"));
    const seen = await watch(browser, server.address);
    try {
      await seen.page.getByRole("list", { name: "Health of the capture" }).waitFor();
      await expect.poll(() => isDrawn(seen.page, "figure .graph")).toBe(true);
      // Graphs of CPUs have the warning too.
      await seen.page.locator("figure .doubt").first().waitFor();
      // The last buffers of the CPUs are missing. Not all CPUs end at the same time.
      await seen.page.goto(
        link(server.address, analysis([panel("cpu_runs", ["process", "|", "rows"], { kind: "lanes" }, "Lanes")])),
      );
      await seen.page.reload();
      await seen.page.getByText("Grey: no data.").waitFor();
      content(seen);
    } finally {
      await seen.close();
      await server.stop();
    }
  });

  test("invalid links do no harm", async () => {
    const server = await open([folder.simulate("healthy", "2s")], folder.folder("home-link"));
    const seen = await watch(browser, `${server.address}#v1=AAAA`);
    try {
      await seen.page.getByText(/This link is invalid/).waitFor();
      await seen.page.goto(
        link(
          server.address,
          analysis([panel("no_such_table", ["a", "|", "b:sum"], { kind: "timeline", by: "x" }, "Nothing")], {
            range: [1, 2],
            filter: [{ column: "<b>", contains: "<i>" }],
          }),
        ),
      );
      await seen.page.reload();
      await seen.page.getByText("There is no table no_such_table.").first().waitFor();
      content(seen);
    } finally {
      await seen.close();
      await server.stop();
    }
  });
});

describe("the page is readable", () => {
  let server: Server;
  beforeAll(async () => {
    server = await open([folder.simulate("dpc-flood-no-teaming", "2s")], folder.folder("home-sizes"));
  });
  afterAll(() => server.stop());

  const flood = analysis([
    panel(
      "interrupts",
      ["module", "function", "|", "rows", "duration_ns:sum", "duration_ns:p99"],
      { kind: "timeline", measure: "time", by: "module", as: "stacked" },
      "DPCs",
    ),
  ]);
  for (const [width, height] of [
    [1920, 1080],
    [1280, 800],
    [800, 900],
  ] as const) {
    for (const colorScheme of ["light", "dark"] as const) {
      test(`at ${width} × ${height}, ${colorScheme}`, async () => {
        for (const screen of [{ page: "overview", traces: [0] }, flood]) {
          const seen = await watch(browser, link(server.address, screen), { viewport: { width, height }, colorScheme });
          try {
            const { page } = seen;
            await page.locator(".u-over").first().waitFor();
            expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
            const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
            expect(background === "rgb(17, 20, 23)").toBe(colorScheme === "dark");
            // All elements that can be pressed must have a name.
            const nameless = await page.locator("button, select, input").evaluateAll((all) =>
              all
                .filter((one) => {
                  const control = one as HTMLInputElement;
                  const named =
                    control.getAttribute("aria-label") ?? (control.labels?.[0]?.textContent || control.textContent);
                  return (named ?? "").trim() === "";
                })
                .map((one) => one.outerHTML.slice(0, 120)),
            );
            expect(nameless).toEqual([]);
            content(seen);
          } finally {
            await seen.close();
          }
        }
      });
    }
  }
});

test("the program's page is small", () => {
  const sizes = execFileSync("find", [join(import.meta.dirname, "../dist"), "-type", "f", "-printf", "%s\n"], {
    encoding: "utf8",
  });
  const sum = sizes
    .trim()
    .split("\n")
    .reduce((sum, size) => sum + Number(size), 0);
  expect(sum).toBeGreaterThan(100_000);
  expect(sum).toBeLessThan(1_000_000);
});
