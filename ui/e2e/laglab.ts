// Runs the program: simulate, open, sql.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["LAGLAB"];

/** Temporary folder for the traces of a run. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "laglab-page-"));

  /** Returns the trace of a scenario, simulated once per duration. */
  simulate(scenario: string, duration?: string): string {
    const trace = join(this.folder(duration ?? "whole"), `${scenario}.etl`);
    if (!existsSync(trace)) run(["simulate", scenario, "-o", trace, ...(duration ? ["--duration", duration] : [])]);
    return trace;
  }

  /** Creates a folder in the temporary folder. */
  folder(name: string): string {
    const path = join(this.path, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Returns the output of a command. */
export function run(args: string[]): string {
  if (!program) throw new Error("LAGLAB must name the program");
  return execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
}

/** Returns the rows of a query by `laglab sql`; `null` in a build without SQL. */
export function sql<Row>(trace: string, query: string): Row[] | null {
  if (!/^\s+sql\s/m.test(run(["--help"]))) return null;
  const lines = run(["sql", trace, query, "--format", "jsonl", "--all"]).trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Row);
}

/** Running `laglab open`. */
export interface Server {
  /** Address of the page, with its token. */
  address: string;
  stop(): Promise<void>;
}

/** Starts `laglab open` with traces and options. */
export async function open(args: string[], home: string): Promise<Server> {
  if (!program) throw new Error("LAGLAB must name the program");
  const child: ChildProcess = spawn(program, ["open", "--no-browser", "--port", "0", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, XDG_CONFIG_HOME: home, APPDATA: home, HOME: home },
  });
  let output = "";
  const address = await new Promise<string>((resolve, reject) => {
    const listen = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]+\//.exec(output)?.[0];
      if (found) resolve(found);
    };
    child.stdout!.on("data", listen);
    child.stderr!.on("data", listen);
    child.once("exit", (code) => reject(new Error(`laglab open ended with ${code}: ${output}`)));
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
