// Reports of `laglab report` in a browser: every picture is drawn, on a desktop and on a phone, and all graphs show the
// same time range. The page of `laglab prove compare` shows its runs.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isDrawn, launch } from "./browser.ts";
import { Folder, run } from "./laglab.ts";

let browser: Browser;
let folder: Folder;
beforeAll(async () => {
  browser = await launch();
  folder = new Folder();
});
afterAll(async () => {
  await browser?.close();
  folder?.remove();
});

/** Opens a file in a browser without network. Calls of the console and requests are complaints. */
async function open(file: string, options: BrowserContextOptions): Promise<{ page: Page; complaints: string[] }> {
  const page = await (await browser.newContext(options)).newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => request.url().startsWith("file:") || complaints.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  return { page, complaints };
}

const DESKTOP = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const PHONE = { viewport: { width: 360, height: 800 }, colorScheme: "dark" } as const;
/** Reports about ranks and focus, a flood of DPCs, and frozen processes; with a picture that they must have. */
const SCENARIOS = [
  ["rank-stall", "60s", "Rank over time"],
  ["dpc-flood-no-teaming", "2s", "DPC durations over time"],
  ["frozen", "9s", "Frozen processes"],
] as const;

describe.each(SCENARIOS)("the report of %s", (scenario, duration, title) => {
  let file: string;
  beforeAll(() => {
    file = join(folder.path, `${scenario}.html`);
    run(["report", "--no-cache", folder.simulate(scenario, duration), "-o", file]);
  });

  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])("draws all pictures on a %s", async (_, options) => {
    const { page, complaints } = await open(file, options);
    const titles = await page.locator("figure.picture h3").allTextContents();
    expect(titles).toContain(title);
    const { length } = await page.locator("[data-picture]").all();
    expect(length).toBe(titles.length);
    for (let place = 0; place < length; place++) {
      await expect.poll(() => isDrawn(page, `[data-picture="${place}"]`), { message: titles[place] ?? "" }).toBe(true);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(options.viewport.width);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

test("graphs of a report are zoomed together", async () => {
  const file = join(folder.path, "rank-stall.html");
  const { page, complaints } = await open(file, DESKTOP);
  const plots = page.locator(".plot [role=application][aria-label*=' from ']");
  const ranges = async () => {
    const labels = await plots.evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""));
    return new Set(labels.map((label) => /from ([\d.]+ s to [\d.]+ s)/.exec(label)?.[1]));
  };
  await expect.poll(async () => (await ranges()).size).toBe(1);
  const [whole] = await ranges();
  await plots.first().scrollIntoViewIfNeeded();
  const box = (await plots.first().boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  await expect.poll(async () => (await ranges()).has(whole)).toBe(false);
  expect((await ranges()).size).toBe(1);
  await page.getByRole("button", { name: "Show all" }).click();
  await expect.poll(async () => [...(await ranges())]).toEqual([whole]);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a report without scripts has everything but its pictures", async () => {
  const file = join(folder.path, "rank-stall.html");
  const { page } = await open(file, { ...DESKTOP, javaScriptEnabled: false });
  // Playwright disables scripts only after it has parsed the page, so that it never shows the note.
  expect(await page.content()).toContain("scripts are disabled here");
  expect(await page.locator("article.finding .sentence").first().textContent()).toContain("LockApp");
  expect(await page.locator("#usage table").count()).toBeGreaterThan(1);
  await page.context().close();
});

test("a report without data for a chart says what to record", async () => {
  const trace = join(import.meta.dirname, "../../../shared/data/etl/perfview__SelfDescribingSingleEvent.etl");
  const file = join(folder.path, "single.html");
  run(["report", "--no-cache", trace, "-o", file]);
  const { page, complaints } = await open(file, PHONE);
  await page.getByText("The trace has no context switches").first().waitFor();
  expect(complaints).toEqual([]);
  await page.context().close();
});

describe("the page of a comparison of runs", () => {
  let file: string;
  beforeAll(() => {
    // Frames take 16 ms with the old driver and 12 ms with the new one. Each driver has 6 runs.
    const rows = Array.from({ length: 480 }, (_, row) => {
      const [run, isNew] = [row % 6, row >= 240];
      const noise = ((run * 7 + row * 13) % 17) / 100;
      return `${isNew ? "new" : "old"},${run},${(isNew ? 12 : 16) + noise}`;
    });
    const runs = join(folder.path, "frames.csv");
    writeFileSync(runs, `driver,run,frame_ms\n${rows.join("\n")}\n`);
    file = join(folder.path, "compared.html");
    const columns = ["--value", "frame_ms", "--run", "run", "--by", "driver", "--before", "old", "--after", "new"];
    run(["prove", "compare", runs, ...columns, "-o", file]);
  });

  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])("draws quantiles, runs and distributions on a %s", async (_, options) => {
    const { page, complaints } = await open(file, options);
    const pictures = page.locator("figure");
    await pictures.nth(2).waitFor();
    expect(await pictures.locator("h3").allTextContents()).toEqual([
      "Change of each quantile",
      "Median of each run",
      "Distributions",
    ]);
    // Nine quantiles, and a dot on each side for each of six runs.
    expect(await pictures.nth(0).locator("circle").count()).toBe(9);
    expect(await pictures.nth(1).locator("circle.before").count()).toBe(6);
    expect(await pictures.nth(1).locator("circle.after").count()).toBe(6);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(options.viewport.width);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test("says the values under the keyboard's place", async () => {
    const { page, complaints } = await open(file, DESKTOP);
    const place = async (picture: number, key: string) => {
      const figure = page.locator("figure").nth(picture);
      await figure.getByRole("application").focus();
      await page.keyboard.press(key);
      return (await figure.locator(".about").textContent()) ?? "";
    };
    expect(await place(0, "Home")).toMatch(/^p10: ÷ 1\.3\d* \(÷ [\d.]+ to ÷ [\d.]+\)$/);
    expect(await place(1, "End")).toMatch(/^run 6: 16\.\d+ ms before, 12\.\d+ ms after$/);
    expect(await place(2, "Home")).toMatch(
      /^12(\.\d+)? ms to [\d.]+ ms: 0\.00 % of the values before, [\d.]+ % after$/,
    );
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
