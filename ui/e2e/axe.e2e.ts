// Accessibility of the pages, checked by axe: no critical and no serious violation.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, link, watch } from "./browser";
import { Folder, open, type Server } from "./laglab";

let folder: Folder;
let browser: Browser;
let server: Server;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
  server = await open([folder.simulate("rank-stall", "32s")], folder.folder("home-axe"));
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  folder.remove();
});

/** Returns the critical and serious violations: the rule and the first element of each. */
async function violations(page: Page): Promise<string[]> {
  // The policy of the page allows no foreign script, so axe runs outside of the page's own scripts.
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const { violations } = found as { violations: { id: string; impact: string; nodes: { html: string }[] }[] };
  return violations
    .filter(({ impact }) => impact === "critical" || impact === "serious")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`);
}

const analysis = (graph: object, columns: string[], table = "cpu_runs") => ({
  page: "analysis",
  traces: [0],
  tabs: [{ name: "Test", panels: [{ view: { table, columns, graph, filter: [] }, title: "Test" }] }],
  tab: 0,
});
const PANEL = ["[role=application]", "regular-table tbody td"];
const grouped = ["process", "thread", "|", "rows", "ready_ns:sum"];
const stacks = ["process", "|", "rows"];
/** Name and content of each screen, and its parts that appear last. */
const screens: [string, object, string[]][] = [
  ["overview", { page: "overview", traces: [0] }, ["[data-finding]"]],
  ["empty analysis", { page: "analysis", traces: [0] }, ["text=Graphs that fit the findings"]],
  ["timeline", analysis({ kind: "timeline", measure: "time", by: "process", as: "stacked" }, grouped), PANEL],
  ["lanes", analysis({ kind: "timeline", measure: "time", by: "thread", as: "lanes" }, grouped), PANEL],
  ["CPU lanes", analysis({ kind: "lanes" }, ["cpu", "|", "rows"]), PANEL],
  ["heat map", analysis({ kind: "heat", measure: "ready_ns" }, grouped), PANEL],
  ["histogram", analysis({ kind: "histogram", measure: "ready_ns", by: "process" }, grouped), PANEL],
  ["flame graph", analysis({ kind: "flame", measure: "rows", stack: "stack_id" }, stacks, "samples"), PANEL],
  ["SQL", { page: "sql", traces: [0] }, ['nav[aria-label="Tables and queries"] button']],
];

for (const colorScheme of ["light", "dark"] as const) {
  test.each(screens)(`%s, ${colorScheme}`, async (_, screen, complete) => {
    const seen = await watch(browser, link(server.address, screen), { colorScheme });
    try {
      for (const part of complete) await seen.page.locator(part).first().waitFor();
      expect(await violations(seen.page)).toEqual([]);
    } finally {
      await seen.close();
    }
  });
}

test("the palette, light", async () => {
  const seen = await watch(browser, link(server.address, { page: "overview", traces: [0] }));
  try {
    await seen.page.locator("[data-finding]").first().waitFor();
    await seen.page.keyboard.press("Control+k");
    await seen.page.getByRole("dialog", { name: "Command palette" }).waitFor();
    expect(await violations(seen.page)).toEqual([]);
  } finally {
    await seen.close();
  }
});
