// The program: simulates, opens, asks.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["LAGLAB"];

/** Where this run keeps its traces; a folder of its own. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "laglab-page-"));

  /** A scenario's trace, as long as it says or as is said here. */
  simulate(scenario: string, duration?: string): string {
    const trace = join(this.path, `${scenario}.etl`);
    if (!existsSync(trace)) run(["simulate", scenario, "-o", trace, ...(duration ? ["--duration", duration] : [])]);
    return trace;
  }

  /** An empty folder in it. */
  folder(name: string): string {
    const path = join(this.path, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** What a command of the program prints. */
export function run(args: string[]): string {
  if (!program) throw new Error("LAGLAB must name the program");
  return execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
}

/** The rows of a query, by `laglab sql`. */
export function sql<Row>(trace: string, query: string): Row[] {
  return JSON.parse(run(["sql", trace, query, "--format", "json"])) as Row[];
}

/** A running `laglab open`. */
export interface Server {
  /** Where the page is, with its token. */
  address: string;
  stop(): Promise<void>;
}

/** Opens traces; the page of each is at the same address. */
export async function open(traces: string[], home: string): Promise<Server> {
  if (!program) throw new Error("LAGLAB must name the program");
  const child: ChildProcess = spawn(program, ["open", "--no-browser", "--port", "0", ...traces], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, XDG_CONFIG_HOME: home, APPDATA: home, HOME: home },
  });
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    const listen = (chunk: Buffer) => {
      said += chunk.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]+\//.exec(said)?.[0];
      if (found) resolve(found);
    };
    child.stdout!.on("data", listen);
    child.stderr!.on("data", listen);
    child.once("exit", (code) => reject(new Error(`laglab open ended with ${code}: ${said}`)));
  });
  return {
    address,
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", () => resolve());
        child.kill("SIGINT");
        setTimeout(() => child.kill("SIGKILL"), 5_000).unref();
      }),
  };
}
