// Files in a browser: samples of `laglab measure`, and reports of the visible panels.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { count } from "../src/format";
import { content, isDrawn, launch, link, watch, type Watched } from "./browser";
import { Folder, open, run, type Server } from "./laglab";

let folder: Folder;
let browser: Browser;
let server: Server | undefined;
let seen: Watched | undefined;
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
});
afterEach(async () => {
  await seen?.close();
  await server?.stop();
  [seen, server] = [undefined, undefined];
});
afterAll(async () => {
  await browser.close();
  folder.remove();
});

async function spoken(page: Page): Promise<string> {
  return (await page.locator("[aria-live=polite]").allTextContents()).join(" ");
}

test("measured samples are shown as a heat map and lines", async () => {
  const samples = join(folder.path, "samples.parquet");
  const report = JSON.parse(
    run(["measure", "sleep", "--request", "1ms", "--count", "60", "--json", "-o", samples]),
  ) as {
    results: { method: string; latency: { count: number } }[];
  };
  server = await open([samples], folder.folder("home-samples"));
  seen = await watch(browser, server.address);
  const { page } = seen;
  await page.getByRole("figure", { name: "Measured latency over time" }).waitFor();
  await expect.poll(() => isDrawn(page, "figure .graph.heat")).toBe(true);
  await expect.poll(() => isDrawn(page, "figure .graph.timeline")).toBe(true);
  await page.getByText(/measured latency samples over/).waitFor();
  // A file of samples never has the tables of a trace, so the page must not list them as missing.
  expect(await page.getByRole("region", { name: "About samples.parquet" }).locator("details").count()).toBe(0);
  // The table has a row for each method, with its number of samples.
  await page.getByRole("button", { name: /^Measured latency over time/ }).click();
  const found = page.locator('section[aria-label="Measured latency over time"] regular-table tbody tr');
  await expect.poll(() => found.count()).toBe(report.results.length);
  const texts = await found.allInnerTexts();
  for (const { method, latency } of report.results) {
    expect(
      texts.some((text) => text.startsWith(method) && text.includes(count(latency.count))),
      `${method}: ${texts.join("; ")}`,
    ).toBe(true);
  }
  content(seen);
});

test("small graphs are navigated and opened by keys", async () => {
  server = await open([folder.simulate("healthy", "2s")], folder.folder("home-keys"));
  seen = await watch(browser, server.address);
  const { page } = seen;
  const figure = page.getByRole("figure", { name: "Utilization by process, thread" });
  await expect.poll(() => isDrawn(page, "figure .graph")).toBe(true);
  await figure.getByRole("button", { name: /Utilization/ }).focus();
  await page.keyboard.press("Tab");
  const isFocused = () => figure.getByRole("application").evaluate((plot) => plot === document.activeElement);
  await expect.poll(isFocused).toBe(true);
  // Until all values are loaded, the buckets of a graph may change.
  const next = async () => {
    await page.keyboard.press("ArrowRight");
    return spoken(page);
  };
  await expect.poll(next).toMatch(/\d s: .*%/);
  const first = await spoken(page);
  await page.keyboard.press("Shift+ArrowLeft");
  await expect.poll(() => spoken(page)).not.toBe(first);
  await page.locator(".values").waitFor();
  await page.keyboard.press("Enter");
  await page.locator('section[aria-label="Utilization by process, thread"]').waitFor();
  content(seen);
});

test("a report draws the visible panels", async () => {
  server = await open([folder.simulate("rank-stall")], folder.folder("home-report"));
  const panel = (table: string, columns: string[], graph: object, title: string, more: object = {}) => ({
    view: { table, columns, graph, filter: [] },
    title,
    ...more,
  });
  const panels = [
    panel(
      "cpu_runs",
      ["process", "|", "rows", "time:sum"],
      { kind: "timeline", measure: "time", by: "process", as: "stacked" },
      "Time",
    ),
    panel("cpu_runs", ["process", "|", "rows"], { kind: "heat", measure: "ready_ns" }, "Heat"),
    panel("interrupts", ["module", "|", "rows"], { kind: "histogram", measure: "duration_ns", by: "module" }, "Spread"),
    panel("cpu_runs", ["cpu", "|", "rows"], { kind: "lanes" }, "Lanes", { show: "graph" }),
    panel("samples", ["process", "|", "rows"], { kind: "flame", measure: "rows", stack: "stack_id" }, "Stacks", {
      show: "graph",
    }),
  ];
  const screen = {
    page: "analysis",
    traces: [0],
    tabs: [{ name: "Test", panels }],
    tab: 0,
    range: [30_000_000_000, 50_000_000_000],
  };
  seen = await watch(browser, link(server.address, screen));
  const { page } = seen;
  await page.locator('section[aria-label="Stacks"]').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save as report" }).click(),
  ]);
  const file = join(folder.path, "report.html");
  copyFileSync(await download.path(), file);
  content(seen);
  await seen.close();
  // Open the file without its server, in a browser without network.
  seen = undefined;
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const alone = await context.newPage();
  const complaints: string[] = [];
  alone.on("console", (message) => complaints.push(message.text()));
  alone.on("request", (request) => request.url().startsWith("file:") || complaints.push(request.url()));
  await alone.goto(`file://${file}`);
  expect(complaints).toEqual([]);
  for (const title of ["Time", "Heat", "Spread", "Lanes", "Stacks"]) {
    const picture = alone.locator("#screen > section", { hasText: title }).first();
    const plot = `#screen > section:has(h3:text-is("${title}")) .plot`;
    await expect.poll(() => isDrawn(alone, plot), { message: title }).toBe(true);
    const { width, height } = (await picture.locator("canvas").first().boundingBox())!;
    expect(width, title).toBeGreaterThan(600);
    expect(height, title).toBeGreaterThan(30);
    expect(await picture.locator("[role=application]").first().getAttribute("aria-label"), title).toMatch(/\w/);
  }
  expect(complaints).toEqual([]);
  await context.close();
});

test("a damaged file is refused with an error", async () => {
  const samples = join(folder.path, "short.parquet");
  run(["measure", "sleep", "--request", "1ms", "--count", "5", "-o", samples]);
  const bytes = readFileSync(samples);
  const cut = join(folder.path, "cut.parquet");
  writeFileSync(cut, bytes.subarray(0, bytes.length - 20));
  await expect(open([cut], folder.folder("home-cut"))).rejects.toThrow(/damaged Parquet file/);
});
