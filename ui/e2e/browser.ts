// A browser that reaches no other machine, and pages that must not complain.

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

/** A page that watches itself: `complaints` must stay empty. */
export interface Watched {
  page: Page;
  complaints: string[];
  close(): Promise<void>;
}

/** Opens an address; errors, warnings of the policy and requests to elsewhere are complaints. */
export async function watch(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(address).origin });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(address).origin && protocol !== "blob:" && protocol !== "data:") complaints.push(`elsewhere: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(address);
  return { page, complaints, close: () => context.close() };
}

/** The address of a screen, as a link has it. */
export function link(address: string, screen: object): string {
  return `${address}#v1=${Buffer.from(JSON.stringify(screen)).toString("base64url")}`;
}

/** The screen of a page's address. */
export function screenOf(page: Page): { [name: string]: unknown } {
  const fragment = new URL(page.url()).hash.replace(/^#v1=/, "");
  // What is seen first has no fragment.
  return fragment === "" ? {} : (JSON.parse(Buffer.from(fragment, "base64url").toString()) as { [name: string]: unknown });
}

/** Whether anything was drawn on a canvas in it: more than one colour. */
export async function isDrawn(page: Page, selector: string): Promise<boolean> {
  return page.locator(selector).first().evaluate((holder) => {
    const canvas = holder instanceof HTMLCanvasElement ? holder : holder.querySelector("canvas");
    const ctx = canvas?.getContext("2d");
    if (!canvas || !ctx || canvas.width === 0 || canvas.height === 0) return false;
    const pixels = new Uint32Array(ctx.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return new Set(pixels).size > 3;
  });
}

/** The rows of a panel's table that are drawn: a text for each cell. */
export async function tableOf(page: Page, panel: string): Promise<{ heads: string[]; rows: string[][] }> {
  return page.locator(`${panel} regular-table`).first().evaluate((table) => {
    const texts = (row: Element) => [...row.children].map((cell) => cell.textContent?.trim() ?? "");
    const [heads] = [...table.querySelectorAll("thead tr")].map(texts);
    return { heads: heads ?? [], rows: [...table.querySelectorAll("tbody tr")].map(texts) };
  });
}

/** Fails with what a page complained about. */
export function content({ complaints }: Watched): void {
  expect(complaints).toEqual([]);
}
