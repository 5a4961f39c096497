// The page in Firefox: all kinds of graphs are drawn, keys work, and no script fails.

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { link } from "./browser";
import { Firefox } from "./firefox";
import { Folder, open, type Server } from "./laglab";

const program = process.env["FIREFOX"];

test("Firefox is installed where all tests must run", () => {
  if (process.env["CI"]) expect(program, "FIREFOX must name the browser").toBeTruthy();
});

describe.runIf(program)("in Firefox", () => {
  let folder: Folder;
  let server: Server;
  let browser: Firefox;
  beforeAll(async () => {
    folder = new Folder();
    server = await open([folder.simulate("rank-stall", "32s")], folder.folder("home-firefox"));
    browser = await Firefox.start(program!, folder.folder("browser"));
  });
  afterAll(async () => {
    await browser.stop();
    await server.stop();
    folder.remove();
  });

  /** Script that returns the number of canvases with more than a few colours. Each of them shows a graph. */
  const DRAWN = `return [...document.querySelectorAll("canvas")].filter((canvas) => {
    if (canvas.width === 0 || canvas.height === 0) return false;
    const copy = document.createElement("canvas").getContext("2d");
    [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
    copy.drawImage(canvas, 0, 0);
    return new Set(new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 3;
  }).length`;

  async function show(screen: object): Promise<void> {
    await browser.goto("about:blank");
    await browser.goto(link(server.address, screen));
  }
  const analysis = (graph: object, columns = ["process", "thread", "|", "rows"], table = "cpu_runs") => ({
    page: "analysis",
    traces: [0],
    tabs: [{ name: "Test", panels: [{ view: { table, columns, graph, filter: [] }, title: "Test" }] }],
    tab: 0,
  });

  test("the overview has graphs, findings and an axis", async () => {
    await show({ page: "overview", traces: [0] });
    await expect.poll(() => browser.evaluate(DRAWN)).toBeGreaterThan(2);
    const explained = `return document.querySelectorAll("[data-finding]").length`;
    await expect.poll(() => browser.evaluate(explained)).toBeGreaterThan(0);
    const axis = `return document.querySelector(".time .axis").textContent`;
    expect(await browser.evaluate(axis)).toContain("10 s");
    const picture = process.env["FIREFOX_PICTURE"];
    if (picture) writeFileSync(picture, await browser.picture());
  });

  test.each([
    ["timeline", analysis({ kind: "timeline", measure: "time", by: "process", as: "stacked" })],
    ["lanes", analysis({ kind: "timeline", measure: "time", by: "thread", as: "lanes" })],
    ["CPU lanes", analysis({ kind: "lanes" })],
    ["heat map", analysis({ kind: "heat", measure: "ready_ns" })],
    ["histogram", analysis({ kind: "histogram", measure: "ready_ns", by: "process" })],
    [
      "flame graph",
      analysis({ kind: "flame", measure: "rows", stack: "stack_id" }, ["process", "|", "rows"], "samples"),
    ],
  ])("%s: the graph is drawn, and the table has rows", async (_, screen) => {
    await show(screen);
    await expect.poll(() => browser.evaluate(DRAWN)).toBeGreaterThan(0);
    const rows = `return document.querySelectorAll("regular-table tbody tr").length`;
    await expect.poll(() => browser.evaluate(rows)).toBeGreaterThan(0);
    expect(await browser.evaluate(`return document.querySelector("[role=alert]")?.textContent ?? null`)).toBeNull();
  });

  test("Ctrl K opens the palette, and Escape closes it", async () => {
    await show({ page: "overview", traces: [0] });
    const isOpen = `return document.querySelector('dialog[aria-label="Command palette"]') !== null`;
    await expect.poll(() => browser.evaluate(`return document.querySelector("header") !== null`)).toBe(true);
    await browser.press("\uE009", "k");
    await expect.poll(() => browser.evaluate(isOpen)).toBe(true);
    await browser.press("\uE00C");
    await expect.poll(() => browser.evaluate(isOpen)).toBe(false);
  });
});
