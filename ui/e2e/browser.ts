// Browser without network, and pages whose errors fail the tests.

import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { expect } from "vitest";

export async function launch(): Promise<Browser> {
  const path = process.env["CHROMIUM"];
  if (!path) throw new Error("CHROMIUM must name the browser");
  return chromium.launch({
    executablePath: path,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ],
  });
}

/** Page with its errors: `complaints` must stay empty. */
export interface Watched {
  page: Page;
  complaints: string[];
  close(): Promise<void>;
}

/** Opens an address. Errors, policy warnings and requests to other servers are complaints. */
export async function watch(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(address).origin });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(address).origin && protocol !== "blob:" && protocol !== "data:")
      complaints.push(`elsewhere: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(address);
  return { page, complaints, close: () => context.close() };
}

/** Returns the link to a screen. */
export function link(address: string, screen: object): string {
  return `${address}#v1=${Buffer.from(JSON.stringify(screen)).toString("base64url")}`;
}

/** Returns the screen in the address of a page. */
export function screenOf(page: Page): { [name: string]: unknown } {
  const fragment = new URL(page.url()).hash.replace(/^#v1=/, "");
  // The initial screen has no fragment.
  return fragment === ""
    ? {}
    : (JSON.parse(Buffer.from(fragment, "base64url").toString()) as { [name: string]: unknown });
}

/** Returns true if a canvas in the element has more than a few colours. */
export async function isDrawn(page: Page, selector: string): Promise<boolean> {
  return page
    .locator(selector)
    .first()
    .evaluate((holder) => {
      const canvas = holder instanceof HTMLCanvasElement ? holder : holder.querySelector("canvas");
      // Read a copy of the canvas. Reading the canvas itself would slow it down and cause a warning.
      const ctx = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      if (!canvas || !ctx || canvas.width === 0 || canvas.height === 0) return false;
      [ctx.canvas.width, ctx.canvas.height] = [canvas.width, canvas.height];
      ctx.drawImage(canvas, 0, 0);
      const pixels = new Uint32Array(ctx.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      return new Set(pixels).size > 3;
    });
}

/** Returns the texts of the drawn headers and rows of a table. */
export async function tableOf(page: Page, panel: string): Promise<{ heads: string[]; rows: string[][] }> {
  return page
    .locator(`${panel} regular-table`)
    .first()
    .evaluate((table) => {
      const texts = (row: Element) => [...row.children].map((cell) => cell.textContent?.trim() ?? "");
      const [heads] = [...table.querySelectorAll("thead tr")].map(texts);
      return { heads: heads ?? [], rows: [...table.querySelectorAll("tbody tr")].map(texts) };
    });
}

/** Returns the elements with text that do not isolate its direction, so that it could reorder the text around them. */
export async function mixed(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("body *:not(script, style)")]
      .filter((element) => [...element.childNodes].some((node) => node.nodeName === "#text" && node.nodeValue?.trim()))
      .filter((element) => !getComputedStyle(element).unicodeBidi.startsWith("isolate"))
      .map((element) => element.outerHTML.slice(0, 200)),
  );
}

/** Fails if the page has complaints. */
export function content({ complaints }: Watched): void {
  expect(complaints).toEqual([]);
}
