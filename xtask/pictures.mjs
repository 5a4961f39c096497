// Takes the pictures of README.md and of the manual. Usage: node pictures.mjs CHROMIUM ADDRESS COMPARISON LINUX FOLDER

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../ui/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const [executablePath, address, comparison, linux, folder] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 700 }, colorScheme: "light" });
const devtools = await page.context().newCDPSession(page);

/** Waits until the page is drawn, then writes a picture of the window or of a part of it. */
async function take(name, part) {
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(2_000);
  const box = part && (await part.boundingBox());
  const clip = box && { ...box, height: Math.min(box.height, 600), scale: 1 };
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 90, clip });
  writeFileSync(`${folder}/${name}.webp`, Buffer.from(data, "base64"));
}

await page.goto(address);
const findings = page.locator("section[aria-label=Findings]");
await findings.locator("li").first().waitFor();
await take("page");

// Takes a picture of the first finding, with its evidence and the causes that were considered.
await page.setViewportSize({ width: 720, height: 1500 });
await findings.locator("summary").first().click();
await take("explanation", findings);

// Takes a picture of the comparison of two traces: changes, and the flame graph of both.
await page.setViewportSize({ width: 1320, height: 760 });
await page.goto(comparison);
await page.locator("section[aria-label=Stacks] canvas").waitFor({ timeout: 120_000 });
await page.locator("section[aria-label=Changes]").evaluate((changes) => changes.scrollIntoView());
await take("comparison");

// Takes a picture of a recording of Linux.
await page.setViewportSize({ width: 1200, height: 640 });
await page.goto(linux);
await findings.locator("li").first().waitFor();
await take("linux");
await browser.close();
