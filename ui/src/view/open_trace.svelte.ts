// Open traces, and the data about them that several parts of the page share, such as tables and findings.

import { api, isCancelled, messageOf } from "../api/client";
import type { Findings, Overview, Preset, Range, TableInfo, TraceFacts } from "../api/types";
import { marksOf, type Mark } from "./marks";

/** Interval in milliseconds of the requests for an overview, while the trace is being read. */
const POLL_MS = 250;

/** Returns the time after the trace's last event, in nanoseconds. */
export function endOf({ range, duration_ns }: TraceFacts): number {
  return (range?.[1] ?? duration_ns ?? 0) + 1;
}

/**
 * Open trace with the data that several parts of the page share. Each kind of data is requested only once.
 */
export class OpenTrace {
  tables = $state.raw<TableInfo[] | null>(null);
  presets = $state.raw<Preset[]>([]);
  overview = $state.raw<Overview | null>(null);
  explanation = $state.raw<Findings | null>(null);
  /** Error messages, by the name of the failed request. */
  failed = $state<Record<string, string>>({});
  marks: Mark[] = $derived(marksOf(this.explanation?.findings ?? []));
  input = $state.raw<Mark[]>([]);
  #requested = new Set<string>();

  trace: TraceFacts = $state.raw() as TraceFacts;

  constructor(trace: TraceFacts) {
    this.trace = trace;
  }

  /** Returns a table by its name. */
  table(name: string): TableInfo | undefined {
    return this.tables?.find((table) => table.name === name);
  }

  /** Sends a request, unless it was already sent. A failed request can be sent again. */
  async #once(name: string, request: () => Promise<void>): Promise<void> {
    if (this.#requested.has(name)) return;
    this.#requested.add(name);
    try {
      await request();
      delete this.failed[name];
    } catch (error) {
      this.#requested.delete(name);
      if (!isCancelled(error)) this.failed[name] = messageOf(error);
    }
  }

  needTables(): void {
    void this.#once("tables", async () => {
      this.tables = await api.tables(this.trace.id);
    });
    void this.#once("presets", async () => {
      this.presets = await api.builtIn(this.trace.id);
    });
  }

  /** Loads the list of tables again, because the numbers of rows are known only after tables are built. */
  async #reloadTables(): Promise<void> {
    if (this.tables !== null) this.tables = await api.tables(this.trace.id);
  }

  /**
   * Loads the facts of the trace again. Some are computed from events, so they are known only after the
   * first tables are built.
   */
  async #reloadFacts(): Promise<void> {
    if (this.trace.complete) return;
    const { traces } = await api.session();
    this.trace = traces.find(({ id }) => id === this.trace.id) ?? this.trace;
  }

  needOverview(): void {
    void this.#once("overview", async () => {
      // Reading a large trace takes seconds, so each graph is shown as soon as its table is built.
      for (;;) {
        const seen = await api.overview(this.trace.id);
        await this.#reloadFacts();
        if (seen.complete || seen.graphs.length > (this.overview?.graphs.length ?? 0)) {
          await this.#reloadTables();
          this.overview = seen;
        }
        if (seen.complete) return;
        await new Promise((done) => setTimeout(done, POLL_MS));
      }
    });
  }

  needFindings(): void {
    void this.#once("findings", async () => {
      this.explanation = await api.findings(this.trace.id);
      await this.#reloadTables();
      await this.#reloadFacts();
    });
  }

  /** Loads the recorded user input, which graphs mark. */
  needInput(): void {
    const table = this.table("input");
    if (table === undefined || table.recorded === false) return;
    void this.#once("input", async () => {
      const columns = [table.time, ...table.columns.filter(({ kind }) => kind === "key").map(({ name }) => name)];
      const { values } = await api.rows(this.trace.id, {
        table: "input",
        columns: [...new Set(columns)].slice(0, 4),
        range: null,
        filter: [],
        sort: null,
        offset: 0,
        first: 1000,
      });
      this.input = values.flatMap(([time, ...rest]) =>
        typeof time === "number"
          ? [
              {
                kind: "input" as const,
                range: [time, time] as Range,
                text: rest.filter((cell) => typeof cell === "string" || typeof cell === "number").join(" "),
              },
            ]
          : [],
      );
    });
  }
}
