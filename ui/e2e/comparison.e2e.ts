// Comparison of two traces in a browser: on the page of `laglab open --against`, and in the report of `laglab prove
// diff`.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ComparedRows, Comparison } from "../src/api/types";
import { count, duration } from "../src/format";
import { content, isDrawn, launch, mixed, watch, type Watched } from "./browser";
import { Folder, open, run, type Server } from "./laglab";

let folder: Folder;
let browser: Browser;
let server: Server;
let before: string;
let after: string;
let comparison: Comparison;
let seen: Watched | undefined;
beforeAll(async () => {
  folder = new Folder();
  browser = await launch();
  before = folder.simulate("dpc-flood-teaming");
  after = folder.simulate("dpc-flood-no-teaming");
  server = await open([before, "--against", after], folder.folder("home"));
  comparison = (await (await fetch(`${server.address}api/comparison`)).json()) as Comparison;
}, 240_000);
afterAll(async () => {
  await server.stop();
  await browser.close();
  folder.remove();
});
afterEach(async () => {
  await seen?.close();
  seen = undefined;
});

async function shown(options: object = {}): Promise<Page> {
  seen = await watch(browser, server.address, options);
  await seen.page.getByRole("heading", { name: "What changed" }).waitFor();
  return seen.page;
}

const section = (page: Page, name: string): Locator => page.getByRole("region", { name, exact: true });
const spoken = async (page: Page) => (await page.locator("[aria-live=polite]").allTextContents()).join(" ");

/** Returns the names in the rows of the table of changes. */
const names = (page: Page) => section(page, "Changes").locator("tbody th[scope=row]").allTextContents();

/** Returns a table of the answer. */
function tableOf(title: string, unit: string): ComparedRows {
  return comparison.tables.find((table) => table.title === title && table.unit === unit)!;
}

describe("the page with a comparison", () => {
  test("opens with the comparison, and shows what changed and what differs besides", async () => {
    const page = await shown();
    const findings = section(page, "Findings");
    expect(await findings.textContent()).toContain("dpc-flood-teaming.etl");
    expect(await findings.textContent()).toContain("simulated");
    // The teaming driver is gone.
    expect(await findings.getByRole("region").textContent()).toMatch(/iansw60e\.sys.*not loaded/);
    expect(comparison.findings.length).toBeGreaterThan(0);
    for (const [place, { sentence, why }] of comparison.findings.entries()) {
      const text = await findings.locator("ol > li").nth(place).textContent();
      for (const part of [sentence, ...why]) expect(text).toContain(part);
    }
    await page.getByRole("navigation", { name: "Pages" }).getByText("Overview").click();
    await page.getByRole("navigation", { name: "Pages" }).getByText("Comparison").click();
    await page.getByRole("heading", { name: "What changed" }).waitFor();
    content(seen!);
  });

  test("shows other kinds and units by mouse, and sorts the table", async () => {
    const page = await shown();
    const changes = section(page, "Changes");
    await changes.getByRole("button", { name: "per second", exact: true }).click();
    await changes.getByRole("button", { name: "Programs", exact: true }).click();
    const table = tableOf("Programs", "per second");
    const bySize = table.rows.toSorted(
      (one, other) => Math.abs(other.after_ns - other.before_ns) - Math.abs(one.after_ns - one.before_ns),
    );
    // The names of the table follow the steps of the waterfall.
    const steps = table.waterfall.steps.length + (table.waterfall.others_ns === 0 ? 2 : 3);
    await expect.poll(async () => (await names(page))[steps]).toBe(bySize[0].name);
    expect(await changes.locator("tfoot").textContent()).toContain(duration(table.waterfall.before_ns));
    await changes.getByRole("button", { name: "Before", exact: true }).click();
    const heading = changes.locator("th", { hasText: "Before" }).last();
    await expect.poll(() => heading.getAttribute("aria-sort")).toBe("descending");
    const most = table.rows.toSorted((one, other) => other.before_ns - one.before_ns)[0];
    await expect.poll(async () => (await names(page))[steps]).toBe(most.name);
    await changes.getByRole("button", { name: "Before", exact: true }).click();
    await expect.poll(() => heading.getAttribute("aria-sort")).toBe("ascending");
    await expect.poll(async () => (await names(page))[steps]).not.toBe(most.name);
    content(seen!);
  });

  test("sorts by keyboard", async () => {
    const page = await shown();
    const changes = section(page, "Changes");
    await changes.getByRole("button", { name: "Module", exact: true }).focus();
    await page.keyboard.press("Enter");
    const heading = changes.locator("th", { hasText: "Module" });
    await expect.poll(() => heading.getAttribute("aria-sort")).toBe("ascending");
    await page.keyboard.press("Space");
    await expect.poll(() => heading.getAttribute("aria-sort")).toBe("descending");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const before = changes.locator("th", { hasText: "Before" }).last();
    await expect.poll(() => before.getAttribute("aria-sort")).toBe("descending");
    content(seen!);
  });

  test("switches the flame graph between before, after and difference", async () => {
    const page = await shown();
    const stacks = section(page, "Stacks");
    await stacks.getByRole("button", { name: "DPCs", exact: true }).click();
    const side = stacks.getByRole("group", { name: "Side of the graph" });
    const pressed = (name: string) => side.getByRole("button", { name }).getAttribute("aria-pressed");
    await expect.poll(() => pressed("Difference")).toBe("true");
    const graph = stacks.getByRole("application");
    const pixels = () =>
      graph.locator("canvas").evaluate(
        (canvas: HTMLCanvasElement) =>
          new Promise<string>((resolve) =>
            // The graph is drawn in the next frame.
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(canvas.toDataURL()))),
          ),
      );
    await expect.poll(() => isDrawn(page, "section[aria-label=Stacks] [role=application]")).toBe(true);
    const difference = await pixels();
    await side.getByRole("button", { name: "Before" }).click();
    await expect.poll(() => pressed("Before")).toBe("true");
    await expect.poll(pixels).not.toBe(difference);
    const old = await pixels();
    // The switch between the sides also works by keyboard.
    await side.getByRole("button", { name: "After" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => pressed("After")).toBe("true");
    await expect.poll(async () => [difference, old].includes(await pixels())).toBe(false);
    await side.getByRole("button", { name: "Difference" }).click();
    await expect.poll(() => stacks.textContent()).toContain("Crossed lines: only in one of them");
    // Keys move from call to call. The page announces the name and the weights of each call.
    const { answer } = comparison.flames.find(({ code }) => code === "dpcs")!;
    await graph.focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => spoken(page)).toContain(answer.frames[answer.nodes.frame[0]]);
    expect(await spoken(page)).toContain(`After ${duration(answer.nodes.total[0])}`);
    expect(await spoken(page)).toContain(`Before ${duration(answer.nodes.compared![0])}`);
    content(seen!);
  });

  test("describes durations and CPUs by keyboard", async () => {
    const page = await shown();
    const histogram = comparison.histograms.find(({ durations }) => durations === "dpc")!;
    const durations = section(page, "Durations of DPCs").getByRole("application").first();
    await durations.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await expect
      .poll(() => spoken(page))
      .toContain(
        `above ${duration(histogram.bounds[1])} up to ${duration(histogram.bounds[2])}: ${count(histogram.before[1])} before`,
      );
    // Both limits have a line.
    expect(await section(page, "Durations of DPCs").locator("line.limit").count()).toBe(2);
    const sum = histogram.before.reduce((all, one) => all + one, 0);
    expect(await durations.getAttribute("aria-label")).toContain(`before: ${count(sum)}`);
    await section(page, "CPUs in DPCs").getByRole("application").focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => spoken(page)).toContain("CPU 0, before, ");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => spoken(page)).toContain("CPU 0, after, ");
    expect(await isDrawn(page, "section[aria-label='CPUs in DPCs']")).toBe(true);
    content(seen!);
  });

  test("draws the rates of durations on a linear scale, or on a logarithmic one", async () => {
    const page = await shown();
    const histogram = comparison.histograms.find(({ durations }) => durations === "dpc")!;
    const durations = section(page, "Durations of DPCs");
    const scale = durations.getByRole("group", { name: "Scale of the heights" });
    const pressed = (name: string) => scale.getByRole("button", { name }).getAttribute("aria-pressed");
    const tall = (side: string, place: number) =>
      durations
        .locator(`rect.${side}`)
        .nth(place)
        .evaluate((bar) => Number(bar.getAttribute("height")));
    // Two classes of one side: on a linear scale, their bars have the ratio of their counts.
    const full = histogram.before.indexOf(Math.max(...histogram.before));
    const few = histogram.before.findIndex((n) => n > 0 && n < histogram.before[full] / 4);
    const ratio = async () => (await tall("before", few)) / (await tall("before", full));
    const expected = histogram.before[few] / histogram.before[full];
    expect([await pressed("Linear"), await pressed("Logarithmic")]).toEqual(["true", "false"]);
    expect(await durations.locator("text.scale").textContent()).toContain("linear");
    expect(await ratio()).toBeCloseTo(expected, 6);
    await scale.getByRole("button", { name: "Logarithmic" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => pressed("Logarithmic")).toBe("true");
    expect(await durations.locator("text.scale").textContent()).toContain("logarithmic");
    expect(await ratio()).toBeGreaterThan(expected * 1.1);
    content(seen!);
  });

  test("describes changes of quantiles by keyboard", async () => {
    const page = await shown();
    const { shifts, units_before } = comparison.histograms.find(({ durations }) => durations === "dpc")!;
    expect(shifts.length).toBeGreaterThan(8);
    expect(units_before).toBeGreaterThan(9);
    const quantiles = section(page, "Durations of DPCs").getByRole("application", { name: "Change of each quantile" });
    await quantiles.focus();
    await page.keyboard.press("End");
    const { share, before_ns, after_ns } = shifts.at(-1)!;
    await expect
      .poll(() => spoken(page))
      .toContain(`p${share * 100}: ${duration(before_ns)} before, ${duration(after_ns)} after`);
    expect(await quantiles.locator("circle").count()).toBe(shifts.length);
    // The traces of a flood have only sleeps, which are no waits for a program.
    expect(comparison.waits).toEqual({ edges: [], omitted: 0 });
    expect(await section(page, "Waits").textContent()).toContain("No change.");
    content(seen!);
  });

  test("shows who waited for whom, by keyboard, too", async () => {
    const traces = [folder.simulate("healthy"), "--against", folder.simulate("lock-convoy")];
    const convoy = await open(traces, folder.folder("home-waits"));
    const other = await watch(browser, convoy.address);
    try {
      const { waits } = (await (await fetch(`${convoy.address}api/comparison`)).json()) as Comparison;
      const { edges } = waits!;
      // Threads of the catalogue wait for each other's lock.
      expect([edges[0].waiting, edges[0].waker]).toEqual(["catalogue.exe", "catalogue.exe"]);
      await other.page.getByRole("heading", { name: "What changed" }).waitFor();
      const shownWaits = section(other.page, "Waits");
      await shownWaits.getByRole("application").focus();
      await other.page.keyboard.press("ArrowDown");
      const expected = `catalogue.exe waited for catalogue.exe: ${duration(edges[0].before_ns)} before`;
      await expect.poll(() => spoken(other.page)).toContain(expected);
      expect(await shownWaits.locator("path").count()).toBe(Math.min(edges.length, 16));
      expect(await shownWaits.locator("tbody tr").count()).toBe(edges.length);
      content(other);
    } finally {
      await other.close();
      await convoy.stop();
    }
  });

  for (const [width, height] of [
    [1280, 800],
    [420, 800],
  ] as const) {
    for (const colorScheme of ["light", "dark"] as const) {
      test(`fits a window of ${width} pixels, ${colorScheme}`, async () => {
        const page = await shown({ viewport: { width, height }, colorScheme });
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        // The comparison below the header scrolls, but the window does not scroll.
        expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(height);
        const wide = await page
          .locator("main section")
          .evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth));
        expect(Math.max(...wide)).toBeLessThanOrEqual(1);
        const nameless = await page
          .locator("main button, main select, main input, main [role=application]")
          .evaluateAll(
            (all) => all.filter((one) => !(one.getAttribute("aria-label") ?? one.textContent ?? "").trim()).length,
          );
        expect(nameless).toBe(0);
        content(seen!);
      });
    }
  }
});

describe("the report", () => {
  /** Opens a file in a browser without network. */
  async function alone(file: string, options: object = {}): Promise<{ page: Page; complaints: string[] }> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("dialog", (dialog) => void (complaints.push(dialog.message()), dialog.dismiss()));
    page.on("request", (request) => request.url().startsWith("file:") || complaints.push(request.url()));
    await page.goto(pathToFileURL(file).href);
    return { page, complaints };
  }

  test("of the program and of the page are the same, and need no other file", async () => {
    const file = join(folder.path, "report.html");
    const printed = run(["prove", "diff", "-o", file, before, "--", after]);
    expect(printed).toContain("ndis.sys");
    const { page, complaints } = await alone(file);
    await page.getByRole("heading", { name: "What changed" }).waitFor();
    const text = await page.locator("main").textContent();
    await expect.poll(() => isDrawn(page, "section[aria-label=Stacks] [role=application]")).toBe(true);
    const changes = section(page, "Changes");
    await changes.getByRole("button", { name: "Before", exact: true }).click();
    expect(await changes.locator("th[aria-sort]").textContent()).toContain("Before");
    expect(complaints).toEqual([]);
    await page.context().close();

    // The report that the page saves has the same text as the report of `laglab prove diff`.
    const shownPage = await shown();
    const [download] = await Promise.all([
      shownPage.waitForEvent("download"),
      shownPage.getByRole("button", { name: "Save as report" }).click(),
    ]);
    const saved = join(folder.path, "saved.html");
    writeFileSync(saved, readFileSync(await download.path()));
    const again = await alone(saved);
    await again.page.getByRole("heading", { name: "What changed" }).waitFor();
    expect(await again.page.locator("main").textContent()).toBe(text);
    expect(again.complaints).toEqual([]);
    await again.page.context().close();
  });

  test("shows hostile names as text, on the page too", async () => {
    const trace = join(folder.path, "hostile\u202eetl.etl");
    run(["simulate", join(import.meta.dirname, "hostile.toml"), "-o", trace]);
    const healthy = folder.simulate("healthy", "2s");
    const file = join(folder.path, "hostile.html");
    run(["prove", "diff", "-o", file, healthy, "--", trace]);
    expect(readFileSync(file, "utf8")).not.toContain("\u202e");
    expect(readFileSync(file, "utf8")).not.toContain("<img");
    const { page, complaints } = await alone(file);
    await page.getByRole("heading", { name: "What changed" }).waitFor();
    const hostile = await open([healthy, "--against", trace], folder.folder("home-hostile"));
    const other = await watch(browser, hostile.address);
    try {
      await other.page.getByRole("heading", { name: "What changed" }).waitFor();
      for (const one of [page, other.page]) {
        await section(one, "Changes").getByRole("button", { name: "Programs", exact: true }).click();
        await one.getByRole("rowheader", { name: "<img src=x onerror=alert(1)>.exe" }).first().waitFor();
        await one.getByText("hostile\\u{202e}etl.etl").first().waitFor();
        expect(await one.locator("main").locator("img, script, b").count()).toBe(0);
        expect(await mixed(one)).toEqual([]);
      }
      expect(complaints).toEqual([]);
      const report = join(folder.path, "report.html");
      run(["report", "-o", report, trace]);
      const seen = await alone(report);
      await seen.page.getByText("<img src=x onerror=alert(1)>.exe").first().waitFor();
      expect(await mixed(seen.page)).toEqual([]);
      await seen.page.context().close();
      content(other);
    } finally {
      await page.context().close();
      await other.close();
      await hostile.stop();
    }
  });
});
