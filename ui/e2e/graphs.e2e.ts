// Lanes, heat maps, flame graphs and explained waits in a browser, compared with the answers of the server.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ButterflyAnswer, FlameAnswer, HeatAnswer, LanesAnswer } from "../src/api/types";
import { count, duration, measured, percent } from "../src/format";
import { content, isDrawn, launch, link, watch, type Watched } from "./browser";
import { Folder, open, sql, type Server } from "./laglab";

let folder: Folder;
let browser: Browser;
let server: Server;
let stall: string;
let watched: Watched;
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
  stall = folder.simulate("rank-stall");
  server = await open([stall], folder.folder("home"));
});
afterAll(async () => {
  await server.stop();
  await browser.close();
  folder.remove();
});
afterEach(async () => {
  content(watched);
  await watched.close();
});

/** Time without requests after which an answer is the last one, in milliseconds. */
const QUIET_MS = 1000;

/** Opens a page of one panel with this graph, and returns the answer of the server. */
async function shown<Answer>(
  what: string,
  table: string,
  columns: string[],
  graph: object,
  more: object = {},
): Promise<{ page: Page; answer: Answer; graph: Locator }> {
  const screen = {
    page: "analysis",
    traces: [0],
    tabs: [{ name: "Test", panels: [{ view: { table, columns, graph, filter: [] }, title: "Test" }] }],
    tab: 0,
    ...more,
  };
  watched = await watch(browser, server.address);
  const { page } = watched;
  // A panel sends its request again when it knows its width. So only the last answer is shown.
  let answer: Answer | undefined;
  let changed = Date.now();
  page.on("request", () => (changed = Date.now()));
  page.on("response", async (response) => {
    if (response.url().endsWith(`/${what}`))
      answer = ((await response.json().catch(() => undefined)) as Answer | undefined) ?? answer;
    changed = Date.now();
  });
  await page.goto(link(server.address, screen));
  await page.getByRole("application").waitFor();
  await expect.poll(() => answer !== undefined && Date.now() - changed > QUIET_MS).toBe(true);
  // The graph is drawn two frames later. Read the canvas once, because browsers draw a canvas
  // differently if it is read often.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await expect.poll(() => isDrawn(page, "[role=application]")).toBe(true);
  return { page, answer: answer!, graph: page.getByRole("application").last() };
}

/** Returns the text of live regions for screen readers. */
async function spoken(page: Page): Promise<string> {
  return (await page.locator("[aria-live=polite]").allTextContents()).join(" ").replaceAll(/\s+/g, " ").trim();
}

describe("lanes", () => {
  const view = ["cpu_runs", ["process", "|", "rows"], { kind: "lanes" }] as const;

  test("describe a run selected by keys and explain it", async () => {
    const { page, answer, graph } = await shown<LanesAnswer>("lanes", view[0], [...view[1]], view[2], {
      range: [11_000_000_000, 11_020_000_000],
    });
    expect(answer.exact).toBe(true);
    const lane = answer.cpus.find(({ runs }) => runs.start.length > 0)!;
    await graph.focus();
    await page.keyboard.press("ArrowRight");
    const process = answer.labels.process[lane.runs.process[0]!];
    await expect.poll(() => spoken(page)).toContain(process);
    expect(await spoken(page)).toContain(`CPU ${lane.cpu}`);
    expect(await spoken(page)).toContain(duration(lane.runs.end[0] - lane.runs.start[0]));
    await page.keyboard.press("Enter");
    const story = page.getByRole("article", { name: "One wait, explained" });
    await story.waitFor();
    expect(await story.textContent()).toContain(process);
  });

  test("have a note if there are too many runs", async () => {
    const { page, answer } = await shown<LanesAnswer>("lanes", view[0], [...view[1]], view[2]);
    expect(answer.exact).toBe(false);
    expect(await page.getByText("Too many runs to show each").count()).toBe(1);
  });
});

test("a heat map describes cells selected by keys and contains all rows", async () => {
  const { page, answer, graph } = await shown<HeatAnswer>("heat", "cpu_runs", ["process", "|", "rows"], {
    kind: "heat",
    measure: "ready_ns",
  });
  await graph.focus();
  await page.keyboard.press("ArrowRight");
  const [slice, row] = [Math.floor(answer.buckets / 2), Math.floor((answer.bounds.length - 1) / 2)];
  const said = `${count(answer.counts[slice][row])} × above ${measured(answer.bounds[row], "ns")} up to ${measured(answer.bounds[row + 1], "ns")}`;
  await expect.poll(() => spoken(page)).toContain(said);
  expect(await spoken(page)).toContain(
    `in this column ${count(answer.counts[slice].reduce((sum, one) => sum + one, 0))}`,
  );
  const all = answer.counts.flat().reduce((sum, one) => sum + one, answer.above + answer.below);
  const pivot = {
    table: "cpu_runs",
    keys: [],
    path: [],
    aggregates: ["ready_ns:count"],
    range: null,
    filter: [],
    sort: null,
    offset: 0,
    first: 1,
    search: null,
  };
  const headers = { "content-type": "application/json" };
  const asked = await fetch(`${server.address}api/traces/0/pivot`, {
    method: "POST",
    headers,
    body: JSON.stringify(pivot),
  });
  expect([all]).toEqual(((await asked.json()) as { totals: number[] }).totals);
  const { sql: has } = (await (await fetch(`${server.address}api/session`)).json()) as { sql: boolean };
  if (has) expect([{ n: all }]).toEqual(sql(stall, "SELECT count(ready_ns) AS n FROM cpu_runs"));
});

describe("a flame graph", () => {
  const view = ["samples", ["process", "|", "rows"], { kind: "flame", measure: "rows", stack: "stack_id" }] as const;

  test("is navigated by keys and has the weights of the answer", async () => {
    const { page, answer, graph } = await shown<FlameAnswer>("flame", view[0], [...view[1]], view[2]);
    const { nodes, frames, total } = answer;
    await graph.focus();
    await page.keyboard.press("ArrowDown");
    const name = (node: number) => frames[nodes.frame[node]];
    await expect
      .poll(() => spoken(page))
      .toContain(`${name(0)}: total ${count(nodes.total[0])}, ${percent(nodes.total[0] / total)}`);
    await page.keyboard.press("ArrowDown");
    const below = nodes.parent.flatMap((parent, node) => (parent === 0 ? [node] : []));
    const heaviest = below.reduce((one, other) => (nodes.total[other] > nodes.total[one] ? other : one));
    await expect.poll(() => spoken(page)).toContain(`${name(heaviest)}: total ${count(nodes.total[heaviest])}`);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Whole" }).click();
  });

  test("finds frames and counts each stack once", async () => {
    const { page, answer } = await shown<FlameAnswer>("flame", view[0], [...view[1]], view[2]);
    const { nodes, frames, total } = answer;
    const text = frames[nodes.frame.at(-1)!].split("!")[0];
    // This check is independent of the page. A call counts if it matches and none of its callers matches.
    const matches = (node: number | null): boolean =>
      node !== null && (frames[nodes.frame[node]].includes(text) || matches(nodes.parent[node]));
    const weight = nodes.total.reduce(
      (sum, one, node) => sum + (matches(node) && !matches(nodes.parent[node]) ? one : 0),
      0,
    );
    await page.getByLabel("Find frames").fill(text);
    await expect.poll(() => page.getByText("in matching stacks").textContent()).toContain(percent(weight / total));
  });

  test("shows callers and callees of a function", async () => {
    const { page, answer, graph } = await shown<FlameAnswer>("flame", view[0], [...view[1]], view[2]);
    await graph.focus();
    await page.keyboard.press("ArrowDown");
    const answered = page.waitForResponse((response) => response.url().endsWith("/butterfly"));
    await page.keyboard.press("b");
    const butterfly = (await (await answered).json()) as ButterflyAnswer;
    const frame = answer.frames[answer.nodes.frame[0]];
    await page.getByText(frame, { exact: true }).first().waitFor();
    // The table has the total of all calls of the function. So it is at least the total of one call in the graph.
    expect(butterfly.callees!.total[0]).toBeGreaterThanOrEqual(answer.nodes.total[0]);
    expect(await page.getByRole("treegrid", { name: /^(Callers|Callees)/ }).count()).toBe(2);
    await page.getByRole("button", { name: "All functions" }).click();
    await page.getByRole("table", { name: /Functions by/ }).waitFor();
  });
});

test("the explanation of a wait has the published facts", async () => {
  watched = await watch(browser, server.address);
  const { page } = watched;
  const [{ thread_id }] = await longest(server.address);
  await page.goto(
    link(server.address, {
      page: "analysis",
      traces: [0],
      wait: { trace: 0, thread_row: null, thread_id, at_ns: 40_000_000_000 },
    }),
  );
  const story = page.getByRole("article", { name: "One wait, explained" });
  await story.waitFor();
  const text = (await story.textContent())!.replaceAll(/\s+/g, " ");
  for (const part of ["LockApp.exe", "was ready 19.493 s", "Readied", "Waited behind others", "rank 2", "✓ yes"])
    expect(text).toContain(part);
  await story.getByText("Threads that ran instead").first().click();
  expect(await story.locator("table").first().isVisible()).toBe(true);
});

/** Returns the threads of the longest waits in the findings. */
async function longest(address: string): Promise<{ thread_id: number }[]> {
  const { findings } = (await (await fetch(`${address}api/traces/0/findings`)).json()) as {
    findings: { theory: string; evidence: { columns: { name: string }[]; rows: unknown[][] }[] }[];
  };
  const [waits] = findings.filter(({ theory }) => theory === "long-waits");
  const [{ columns, rows }] = waits.evidence;
  const at = columns.findIndex(({ name }) => name === "thread_id");
  return rows.map((row) => ({ thread_id: row[at] as number }));
}
