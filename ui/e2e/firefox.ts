// Firefox, driven by its own protocol (Marionette): JSON messages with their length, over TCP.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";

/** Time in which Firefox must start, in milliseconds. */
const START_MS = 90_000;

/** Running Firefox without a window. */
export class Firefox {
  #socket!: Socket;
  #input = Buffer.alloc(0);
  #next = 1;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: string,
  ) {}

  /** Starts Firefox with an empty profile in a folder. */
  static async start(program: string, folder: string): Promise<Firefox> {
    const profile = join(folder, "firefox");
    mkdirSync(profile, { recursive: true });
    // Port 0 lets Firefox choose a port, which it writes to a file of the profile.
    const settings = {
      "marionette.port": 0,
      "browser.shell.checkDefaultBrowser": false,
      "datareporting.policy.dataSubmissionEnabled": false,
      "app.update.auto": false,
      "network.captive-portal-service.enabled": false,
      "network.connectivity-service.enabled": false,
    };
    const lines = Object.entries(settings).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${value});\n`);
    writeFileSync(join(profile, "user.js"), lines.join(""));
    const child = spawn(program, ["--headless", "--no-remote", "--marionette", "--profile", profile], {
      stdio: "ignore",
      env: { ...process.env, HOME: folder, MOZ_HEADLESS_WIDTH: "1280", MOZ_HEADLESS_HEIGHT: "800" },
    });
    const browser = new Firefox(child, profile);
    await browser.#connect();
    await browser.#send("WebDriver:NewSession", {});
    return browser;
  }

  async #connect(): Promise<void> {
    const end = Date.now() + START_MS;
    for (;;) {
      try {
        const port = Number(readFileSync(join(this.profile, "MarionetteActivePort"), "utf8"));
        this.#socket = await new Promise<Socket>((resolve, reject) => {
          const socket = connect(port, "127.0.0.1", () => resolve(socket));
          socket.once("error", reject);
        });
        this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
        return;
      } catch (error) {
        if (Date.now() > end) throw new Error("Firefox did not start", { cause: error });
        await new Promise((done) => setTimeout(done, 200));
      }
    }
  }

  #receive(chunk: Buffer): void {
    this.#input = Buffer.concat([this.#input, chunk]);
    for (;;) {
      const colon = this.#input.indexOf(":");
      if (colon < 0) return;
      const length = Number(this.#input.subarray(0, colon).toString());
      const end = colon + 1 + length;
      if (this.#input.length < end) return;
      const message = JSON.parse(this.#input.subarray(colon + 1, end).toString()) as unknown;
      this.#input = this.#input.subarray(end);
      // The first message describes the protocol. All others are answers.
      if (!Array.isArray(message)) continue;
      const [, id, error, result] = message as [number, number, { message: string } | null, { value: unknown } | null];
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result?.value);
    }
  }

  #send(command: string, parameters: object): Promise<unknown> {
    const id = this.#next++;
    const text = JSON.stringify([0, id, command, parameters]);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  }

  /** Opens an address, and waits until its document is loaded. */
  async goto(address: string): Promise<void> {
    await this.#send("WebDriver:Navigate", { url: address });
  }

  /** Returns the result of a script in the page. */
  async evaluate<T>(script: string): Promise<T> {
    return (await this.#send("WebDriver:ExecuteScript", { script, args: [] })) as T;
  }

  /** Presses and releases keys in the page. */
  async press(...keys: string[]): Promise<void> {
    const down = keys.map((value) => ({ type: "keyDown", value }));
    const up = keys.toReversed().map((value) => ({ type: "keyUp", value }));
    await this.#send("WebDriver:PerformActions", {
      actions: [{ type: "key", id: "keyboard", actions: [...down, ...up] }],
    });
  }

  /** Returns a picture of the window as PNG. */
  async picture(): Promise<Buffer> {
    return Buffer.from((await this.#send("WebDriver:TakeScreenshot", { full: false })) as string, "base64");
  }

  async stop(): Promise<void> {
    const ended = new Promise<void>((done) => this.child.once("exit", () => done()));
    await this.#send("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => undefined);
    setTimeout(() => this.child.kill("SIGKILL"), 10_000).unref();
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }
}
