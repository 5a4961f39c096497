// Client of the HTTP API. Answers are cached, because equal requests have equal answers while the page is
// open.

import type {
  ButterflyAnswer,
  ButterflyRequest,
  Comparison,
  ErrorJson,
  Findings,
  FlameAnswer,
  FlameRequest,
  HeatAnswer,
  HeatRequest,
  HistogramAnswer,
  HistogramRequest,
  LanesAnswer,
  LanesRequest,
  Overview,
  OwnPreset,
  PivotAnswer,
  PivotRequest,
  Place,
  Preset,
  Progress,
  ReportRequest,
  RowsAnswer,
  RowsRequest,
  Session,
  SqlAnswer,
  SqlCatalogue,
  SqlRequest,
  Story,
  TableInfo,
  TimelineAnswer,
  TimelineRequest,
  WaitRequest,
} from "./types";
import { parse, stringify } from "../visible";

/** Error response of the server. */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
    /** Position in the SQL query, if the error is about a position; otherwise `null`. */
    readonly place: Place | null = null,
  ) {
    super(message);
  }
}

/** Returns true if the error only means that the request was cancelled. */
export function isCancelled(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Returns the message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Reads the error from a response of the server. */
async function errorOf(response: Response): Promise<RequestError> {
  const text = await response.text();
  try {
    const { error, place } = parse(text) as ErrorJson;
    return new RequestError(error, response.status, place ?? null);
  } catch {
    return new RequestError(text || `The server returned status ${response.status}.`, response.status);
  }
}

/**
 * Time on the page's clock since which at least one request has been pending; `null` if no request is
 * pending.
 */
export const waiting: { since: number | null } = { since: null };
let pending = 0;

/** Maximum number of characters of a request that may outlive the page. Browsers limit these requests to 64 KiB. */
const MAX_OUTLIVING = 20_000;

/** Sends a request. If the page is closed, only a request that `outlives` it and is short enough continues. */
async function ask(path: string, body?: unknown, signal?: AbortSignal, outlives = false): Promise<Response> {
  const init: RequestInit = { signal: signal ?? null };
  if (body !== undefined) {
    init.method = "POST";
    init.headers = { "content-type": "application/json" };
    const text = stringify(body);
    init.body = text;
    init.keepalive = outlives && text.length <= MAX_OUTLIVING;
  }
  let response: Response;
  try {
    response = await fetch(`api/${path}`, init);
  } catch (error) {
    if (isCancelled(error)) throw error;
    throw new RequestError("The server does not answer. Is `laglab open` still running?", 0);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** Maximum number of cached answers. */
const MAX_ANSWERS = 256;
const answers = new Map<string, unknown>();

async function json<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return parse(await (await ask(path, body, signal)).text()) as T;
}

/**
 * Maximum number of concurrent requests. Browsers open at most six connections to a server. While all
 * requests wait for a large trace, two connections stay free for requests of the progress.
 */
const MAX_CONCURRENT = 4;
let running = 0;
const queue: (() => void)[] = [];

/** Waits until a request may start. If the request is cancelled, it leaves the queue. */
async function waitForSlot(signal: AbortSignal | undefined): Promise<void> {
  if (running < MAX_CONCURRENT) {
    running += 1;
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const enter = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      queue.splice(queue.indexOf(enter), 1);
      reject(new DOMException("The request was cancelled.", "AbortError"));
    };
    if (signal?.aborted) return leave();
    signal?.addEventListener("abort", leave, { once: true });
    queue.push(enter);
  });
}

/** Starts the next request in the queue, or marks the slot as free. */
function releaseSlot(): void {
  const next = queue.shift();
  if (next) next();
  else running -= 1;
}

/** Returns the cached answer of a request if there is one. Otherwise, sends the request like `json`. */
async function cached<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const key = body === undefined ? path : `${path} ${JSON.stringify(body)}`;
  const known = answers.get(key);
  if (known !== undefined) {
    answers.delete(key);
    answers.set(key, known);
    return known as T;
  }
  waiting.since ??= performance.now();
  pending += 1;
  let answer: T;
  try {
    await waitForSlot(signal);
    try {
      answer = await json<T>(path, body, signal);
    } finally {
      releaseSlot();
    }
  } finally {
    pending -= 1;
    if (pending === 0) waiting.since = null;
  }
  answers.set(key, answer);
  if (answers.size > MAX_ANSWERS) answers.delete(answers.keys().next().value!);
  return answer;
}

/** Returns the function that sends a request about a trace. `what` is the name of the request in the API. */
export function about<Request, Answer>(what: string) {
  return (trace: number, request: Request, signal?: AbortSignal) =>
    cached<Answer>(`traces/${trace}/${what}`, request, signal);
}

/** Requests of the API. Their signals cancel them. */
export const api = {
  session: (signal?: AbortSignal) => json<Session>("session", undefined, signal),
  progress: (signal?: AbortSignal) => json<Progress>("progress", undefined, signal),
  presets: (signal?: AbortSignal) => json<OwnPreset[]>("presets", undefined, signal),
  savePresets: (presets: OwnPreset[]) => ask("presets", presets),
  /** Returns a document that the page has kept under a name, or `null`. */
  kept: (name: string) => json<unknown>(`kept/${name}`),
  keep: (name: string, document: unknown) => ask(`kept/${name}`, document, undefined, true),
  tables: (trace: number, signal?: AbortSignal) => json<TableInfo[]>(`traces/${trace}/tables`, undefined, signal),
  builtIn: (trace: number, signal?: AbortSignal) => cached<Preset[]>(`traces/${trace}/presets`, undefined, signal),
  overview: (trace: number, signal?: AbortSignal) => json<Overview>(`traces/${trace}/overview`, undefined, signal),
  findings: (trace: number, signal?: AbortSignal) => cached<Findings>(`traces/${trace}/findings`, undefined, signal),
  wait: about<WaitRequest, Story>("wait"),
  timeline: about<TimelineRequest, TimelineAnswer>("timeline"),
  pivot: about<PivotRequest, PivotAnswer>("pivot"),
  rows: about<RowsRequest, RowsAnswer>("rows"),
  flame: about<FlameRequest, FlameAnswer>("flame"),
  butterfly: about<ButterflyRequest, ButterflyAnswer>("butterfly"),
  heat: about<HeatRequest, HeatAnswer>("heat"),
  histogram: about<HistogramRequest, HistogramAnswer>("histogram"),
  lanes: about<LanesRequest, LanesAnswer>("lanes"),
  sql: (request: SqlRequest, signal?: AbortSignal) => json<SqlAnswer>("sql", request, signal),
  catalogue: (signal?: AbortSignal) => cached<SqlCatalogue>("sql/catalogue", undefined, signal),
  comparison: (signal?: AbortSignal) => cached<Comparison>("comparison", undefined, signal),
  comparisonReport: async () => (await ask("comparison/report")).blob(),
  report: async (request: ReportRequest) => (await ask("report", request)).blob(),
};

/** Sequence of requests. Each new request cancels the previous one. */
export class Latest {
  #controller: AbortController | undefined;

  /** Sends a request. Returns `undefined` if a newer request has replaced it. */
  async ask<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      const answer = await send(controller.signal);
      return this.#controller === controller ? answer : undefined;
    } catch (error) {
      if (this.#controller !== controller || isCancelled(error)) return undefined;
      throw error;
    }
  }

  /** Cancels the current request. */
  stop(): void {
    this.#controller?.abort();
    this.#controller = undefined;
  }
}
