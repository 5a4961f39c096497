// Asks the server. A newer request of the same asker ends its older one; answers are kept, for the
// same question has the same answer as long as the page is open.

import type {
  Explanation,
  Histogram,
  HistogramRequest,
  Overview,
  Pivot,
  PivotRequest,
  Preset,
  Progress,
  ReportPanel,
  Rows,
  RowsRequest,
  Session,
  Table,
  Timeline,
  TimelineRequest,
} from "./types";

/** What the server says against a request. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
    /** Where in the query, if it is about one. */
    readonly place: { line: number; column: number } | null = null,
  ) {
    super(message);
  }
}

/** Whether an error only says that nobody waits for the answer any more. */
export function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What went wrong, as a sentence. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function refusal(response: Response): Promise<Refused> {
  const text = await response.text();
  try {
    const { error, place } = JSON.parse(text) as { error: string; place?: { line: number; column: number } };
    return new Refused(error, response.status, place ?? null);
  } catch {
    return new Refused(text || `The server answered ${response.status}.`, response.status);
  }
}

/** Since when answers are waited for, on the page's clock; not while none is. */
export const waiting: { since: number | null } = { since: null };
let pending = 0;

async function ask(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { signal: signal ?? null };
  if (body !== undefined) {
    init.method = "POST";
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(`api/${path}`, init);
  } catch (error) {
    if (isCancelled(error)) throw error;
    throw new Refused("The server does not answer: is `laglab open` still running?", 0);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Answers of that many questions are kept. */
const KEPT = 256;
const answers = new Map<string, unknown>();

async function json<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return (await ask(path, body, signal)).json() as Promise<T>;
}

/**
 * So many requests are under way at once: a browser has six connections to a server, and how far the
 * server is can be asked even while all others wait for a large trace.
 */
const AT_ONCE = 4;
let underWay = 0;
const queue: (() => void)[] = [];

/** Waits for a place; whoever gives up meanwhile leaves the queue. */
async function place(signal: AbortSignal | undefined): Promise<void> {
  if (underWay < AT_ONCE) {
    underWay += 1;
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const enter = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      queue.splice(queue.indexOf(enter), 1);
      reject(new DOMException("Nobody waits for it any more.", "AbortError"));
    };
    if (signal?.aborted) return leave();
    signal?.addEventListener("abort", leave, { once: true });
    queue.push(enter);
  });
}

/** Gives the place to the next. */
function leavePlace(): void {
  const next = queue.shift();
  if (next) next();
  else underWay -= 1;
}

/** As `json`, from what is kept if it was asked before. */
async function once<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const question = body === undefined ? path : `${path} ${JSON.stringify(body)}`;
  const known = answers.get(question);
  if (known !== undefined) {
    answers.delete(question);
    answers.set(question, known);
    return known as T;
  }
  waiting.since ??= performance.now();
  pending += 1;
  let answer: T;
  try {
    await place(signal);
    try {
      answer = await json<T>(path, body, signal);
    } finally {
      leavePlace();
    }
  } finally {
    pending -= 1;
    if (pending === 0) waiting.since = null;
  }
  answers.set(question, answer);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value!);
  return answer;
}

/** The server's requests. All take a signal that ends them. */
export const api = {
  session: (signal?: AbortSignal) => json<Session>("session", undefined, signal),
  progress: (signal?: AbortSignal) => json<Progress>("progress", undefined, signal),
  presets: (signal?: AbortSignal) => json<Preset[]>("presets", undefined, signal),
  savePresets: (presets: Preset[]) => ask("presets", presets),
  tables: (trace: number, signal?: AbortSignal) => json<Table[]>(`traces/${trace}/tables`, undefined, signal),
  builtIn: (trace: number, signal?: AbortSignal) => once<Preset[]>(`traces/${trace}/presets`, undefined, signal),
  overview: (trace: number, signal?: AbortSignal) => json<Overview>(`traces/${trace}/overview`, undefined, signal),
  findings: (trace: number, signal?: AbortSignal) => once<Explanation>(`traces/${trace}/findings`, undefined, signal),
  timeline: (trace: number, request: TimelineRequest, signal?: AbortSignal) =>
    once<Timeline>(`traces/${trace}/timeline`, request, signal),
  pivot: (trace: number, request: PivotRequest, signal?: AbortSignal) =>
    once<Pivot>(`traces/${trace}/pivot`, request, signal),
  rows: (trace: number, request: RowsRequest, signal?: AbortSignal) =>
    once<Rows>(`traces/${trace}/rows`, request, signal),
  histogram: (trace: number, request: HistogramRequest, signal?: AbortSignal) =>
    once<Histogram>(`traces/${trace}/histogram`, request, signal),
  /** Any other request about a trace, with the types of whoever asks. */
  ask: <T>(trace: number, what: string, request: unknown, signal?: AbortSignal) =>
    once<T>(`traces/${trace}/${what}`, request, signal),
  sql: <T>(request: { traces: number[]; query: string; first: number }, signal?: AbortSignal) =>
    json<T>("sql", request, signal),
  catalogue: <T>(signal?: AbortSignal) => once<T>("sql/catalogue", undefined, signal),
  report: async (request: { trace: number; panels: ReportPanel[]; title: string }) =>
    (await ask("report", request)).blob(),
};

/** One asker: its newer request ends its older one. */
export class Latest {
  #controller: AbortController | undefined;

  /** Asks; `undefined` if a newer question was asked before the answer came. */
  async ask<T>(question: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      const answer = await question(controller.signal);
      return this.#controller === controller ? answer : undefined;
    } catch (error) {
      if (this.#controller !== controller || isCancelled(error)) return undefined;
      throw error;
    }
  }

  /** Waits for no answer any more. */
  stop(): void {
    this.#controller?.abort();
    this.#controller = undefined;
  }
}
