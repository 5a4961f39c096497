// What the page shows now, and how it comes to show something else: every change is a step of the
// browser's history, with its address.

import { api, isCancelled, sentence, waiting } from "../api/client";
import type { Explanation, Filter, Overview, Preset, Progress, Range, Session, Table, Trace, View } from "../api/types";
import { fragmentOf, screenOf } from "./fragment";
import { joined } from "./filters";
import { marksOf, type Mark } from "./marks";
import { around, panned, same, within, zoomed } from "./range";
import { longestWait, type Moment } from "../wait/moment";
import { firstScreen, type FindingAt, type Panel, type Screen, type Tab } from "./screen";

/** Changes of the same kind that follow each other this fast are one step back. */
const ONE_STEP_MS = 900;

/** How often it is looked what can be drawn of a trace that is being read. */
const LOOK_AGAIN_MS = 250;

/** The nanosecond after a trace's last event. */
export function endOf({ range, duration_ns }: Trace): number {
  return (range?.[1] ?? duration_ns ?? 0) + 1;
}

/** All about one trace that is asked once. */
export class Opened {
  tables = $state.raw<Table[] | null>(null);
  presets = $state.raw<Preset[]>([]);
  overview = $state.raw<Overview | null>(null);
  explanation = $state.raw<Explanation | null>(null);
  /** What could not be had, by what was asked. */
  failed = $state<Record<string, string>>({});
  marks: Mark[] = $derived(marksOf(this.explanation?.findings ?? []));
  input = $state.raw<Mark[]>([]);
  #asked = new Set<string>();

  trace: Trace = $state.raw() as Trace;

  constructor(trace: Trace) {
    this.trace = trace;
  }

  /** A table by its name. */
  table(name: string): Table | undefined {
    return this.tables?.find((table) => table.name === name);
  }

  /** Asks once; again after it failed. */
  async #once(what: string, ask: () => Promise<void>): Promise<void> {
    if (this.#asked.has(what)) return;
    this.#asked.add(what);
    try {
      await ask();
      delete this.failed[what];
    } catch (error) {
      this.#asked.delete(what);
      if (!isCancelled(error)) this.failed[what] = sentence(error);
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

  /** How many rows tables have is known once they are made. */
  async #renew(): Promise<void> {
    if (this.tables !== null) this.tables = await api.tables(this.trace.id);
  }

  needOverview(): void {
    void this.#once("overview", async () => {
      // Reading a large trace takes seconds; what can be drawn before is shown.
      for (;;) {
        const seen = await api.overview(this.trace.id);
        if (seen.complete || seen.graphs.length > (this.overview?.graphs.length ?? 0)) {
          await this.#renew();
          this.overview = seen;
        }
        if (seen.complete) return;
        await new Promise((done) => setTimeout(done, LOOK_AGAIN_MS));
      }
    });
  }

  needFindings(): void {
    void this.#once("findings", async () => {
      this.explanation = await api.findings(this.trace.id);
      await this.#renew();
      // All of a large trace is read by now.
      if (this.trace.complete === false) {
        const { traces } = await api.session();
        this.trace = traces.find(({ id }) => id === this.trace.id) ?? this.trace;
      }
    });
  }

  /** Keys pressed and clicks, for marks. */
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

class Page {
  session = $state.raw<Session | null>(null);
  /** Why nothing can be shown. */
  failure = $state<string | null>(null);
  opened = $state.raw<Map<number, Opened>>(new Map());
  own = $state.raw<Preset[]>([]);
  screen = $state.raw<Screen>(firstScreen([]));
  /** The moment under the pointer. */
  hover = $state<number | null>(null);
  showMarks = $state(true);
  progress = $state.raw<Progress | null>(null);
  /** Said once, for a while. */
  notice = $state<string | null>(null);
  /** How far back and forward one can go. */
  at = $state(0);
  last = $state(0);

  #step: { kind: string; when: number } | null = null;
  #later: ReturnType<typeof setTimeout> | undefined;
  #noticed: ReturnType<typeof setTimeout> | undefined;

  /** The trace that is analysed. */
  get main(): Opened | undefined {
    return this.opened.get(this.screen.traces[0] ?? -1);
  }

  /** The traces that are shown. */
  get shown(): Opened[] {
    return this.screen.traces.flatMap((id) => this.opened.get(id) ?? []);
  }

  /** The whole of all traces shown: up to their last event and with it. */
  get whole(): Range {
    return [0, Math.max(...this.shown.map(({ trace }) => endOf(trace)), 1000)];
  }

  /** What is seen of it. */
  get range(): Range {
    return this.screen.range ? within(this.screen.range, this.whole) : this.whole;
  }

  /** What tables are about: what is selected, or else what is seen. */
  get focus(): Range {
    return this.screen.selection ?? this.range;
  }

  get panels(): Panel[] {
    return this.screen.tabs[this.screen.tab]?.panels ?? [];
  }

  /** Asks what there is, and shows what the address says. */
  async start(): Promise<void> {
    try {
      const session = await api.session();
      this.opened = new Map(session.traces.map((trace) => [trace.id, new Opened(trace)]));
      this.session = session;
      this.#read();
      history.replaceState({ at: 0 }, "");
      addEventListener("popstate", (event) => {
        clearTimeout(this.#later);
        this.#later = undefined;
        const state = event.state as { at?: number } | null;
        this.at = state?.at ?? this.last + 1;
        this.last = Math.max(this.last, this.at);
        this.#step = null;
        this.#read();
      });
      this.own = await api.presets().catch(() => []);
    } catch (error) {
      this.failure = sentence(error);
    }
  }

  #read(): void {
    const open = [...this.opened.keys()];
    const screen = screenOf(location.hash, open);
    if (screen === null && location.hash.length > 1) this.say("This link cannot be read: it shows the overview instead.");
    this.screen = screen ?? firstScreen(open.slice(0, 4));
  }

  /**
   * Shows something else. Steps of the same `kind` in quick succession are one, so that the way back
   * does not go through every moment of panning.
   */
  go(change: Partial<Screen>, kind = ""): void {
    const now = performance.now();
    const joins = kind !== "" && this.#step?.kind === kind && now - this.#step.when < ONE_STEP_MS;
    this.#step = { kind, when: now };
    if (!joins) this.settle();
    this.screen = { ...this.screen, ...change };
    if (joins) {
      // Browsers stop pages that change their address many times a second.
      this.#later ??= setTimeout(() => this.settle(), 200);
    } else {
      this.at += 1;
      this.last = this.at;
      history.pushState({ at: this.at }, "", `#${fragmentOf(this.screen)}`);
    }
  }

  /** Lets the address say what is shown, if it does not yet. */
  settle(): void {
    if (this.#later === undefined) return;
    clearTimeout(this.#later);
    this.#later = undefined;
    history.replaceState({ at: this.at }, "", `#${fragmentOf(this.screen)}`);
  }

  /** Tells something, for some seconds. */
  say(text: string): void {
    this.notice = text;
    clearTimeout(this.#noticed);
    this.#noticed = setTimeout(() => (this.notice = null), 6000);
  }

  // Time.

  zoomTo(range: Range | null, kind = "zoom"): void {
    const next = range && within(range, this.whole);
    const all = next === null || same(next, this.whole);
    this.go({ range: all ? null : next }, kind);
  }

  zoomBy(factor: number, at?: number): void {
    this.zoomTo(zoomed(this.range, factor, this.whole, at), "zooming");
  }

  pan(share: number): void {
    this.zoomTo(panned(this.range, share, this.whole), "panning");
  }

  select(range: Range | null): void {
    if (!same(range, this.screen.selection)) this.go({ selection: range && within(range, this.whole) }, "selecting");
  }

  zoomToSelection(): void {
    if (this.screen.selection) this.go({ range: within(this.screen.selection, this.whole), selection: null });
  }

  // Filters of all graphs.

  filterAll(filter: Filter): void {
    this.go({ filter: joined(this.screen.filter, filter) });
  }

  unfilterAll(place: number): void {
    this.go({ filter: this.screen.filter.filter((_, one) => one !== place) });
  }

  // Panels.

  /** Puts other panels into the tab that is shown. */
  setPanels(panels: Panel[], kind = ""): void {
    const tabs = this.screen.tabs.map((tab, place) => (place === this.screen.tab ? { ...tab, panels } : tab));
    this.go({ tabs, page: "analysis" }, kind);
  }

  changePanel(place: number, change: Partial<Panel>, kind = ""): void {
    const panels = this.panels.map((panel, one) => (one === place ? { ...panel, ...change } : panel));
    this.setPanels(panels, kind);
  }

  addPanel(view: View, title?: string): void {
    const panel: Panel = title === undefined ? { view } : { view, title };
    this.setPanels([...this.panels, panel]);
  }

  closePanel(place: number): void {
    this.setPanels(this.panels.filter((_, one) => one !== place));
  }

  movePanel(place: number, by: number): void {
    const panels = [...this.panels];
    const [panel] = panels.splice(place, 1);
    panels.splice(place + by, 0, panel!);
    this.setPanels(panels);
  }

  addTab(name: string, panels: Panel[] = [], change: Partial<Screen> = {}): void {
    const tabs = [...this.screen.tabs, { name, panels }];
    this.go({ ...change, tabs, tab: tabs.length - 1, page: "analysis" });
  }

  closeTab(place: number): void {
    const tabs = this.screen.tabs.filter((_, one) => one !== place);
    if (tabs.length === 0) tabs.push({ name: "Analysis 1", panels: [] });
    const tab = Math.min(this.screen.tab - (place < this.screen.tab ? 1 : 0), tabs.length - 1);
    this.go({ tabs, tab: Math.max(tab, 0) });
  }

  /**
   * Zooms and filters everything to the evidence of a finding, in a tab of its own. What no view shows is
   * shown there as rows; of a wait its story is told beside it.
   */
  follow(opened: Opened, place: number, evidence?: number): void {
    const finding = opened.explanation?.findings[place];
    if (!finding) return;
    const chosen = evidence === undefined ? finding.evidence : finding.evidence.slice(evidence, evidence + 1);
    const panels: Panel[] = chosen.flatMap(({ title, view, rows }) => (view && rows.length > 0 ? [{ view: { ...view, range: null }, title }] : []));
    const during: Range | null = finding.during ? [finding.during.start, finding.during.end] : null;
    // What is about all of the trace is not cut to when the finding was.
    const range = chosen.find(({ view }) => view?.range)?.view?.range ?? (panels.length === 0 ? during : null);
    const moment = longestWait(finding);
    const at: FindingAt = { trace: opened.trace.id, place };
    const tab: Tab = { name: this.nameOf(at), panels, finding: at };
    const known = this.screen.tabs.findIndex(({ finding }) => finding?.trace === at.trace && finding.place === place);
    // An empty first tab makes room.
    const tabs = known < 0 ? [...this.screen.tabs.filter((one) => one.panels.length > 0 || one.finding), tab] : this.screen.tabs.with(known, tab);
    this.go({
      range: range && around(range, this.whole),
      // A moment has no length to be selected.
      selection: range && range[1] > range[0] ? range : null,
      filter: [],
      wait: moment && { trace: at.trace, thread_row: null, ...moment },
      tabs,
      tab: known < 0 ? tabs.length - 1 : known,
      page: "analysis",
    });
  }

  /** Tells the story of a thread at a moment. */
  explain(opened: Opened, moment: Moment): void {
    this.go({ wait: { trace: opened.trace.id, thread_row: null, ...moment } });
  }

  /** What a finding is called: by its number in the list, and its trace where there are several. */
  nameOf({ trace, place }: FindingAt): string {
    const of = this.opened.size > 1 ? ` of ${this.opened.get(trace)?.trace.name ?? "?"}` : "";
    return `Finding ${place + 1}${of}`;
  }

  // Presets.

  async savePreset(name: string, view: View): Promise<void> {
    const kept = this.own.filter((preset) => preset.name !== name);
    const own = [...kept, { name, view }].sort((one, other) => one.name.localeCompare(other.name));
    await this.#keep(own);
  }

  async dropPreset(name: string): Promise<void> {
    await this.#keep(this.own.filter((preset) => preset.name !== name));
  }

  async #keep(own: Preset[]): Promise<void> {
    try {
      await api.savePresets(own);
      this.own = own;
    } catch (error) {
      this.say(sentence(error));
    }
  }

  /** Looks how far the server is while an answer takes long. */
  watchProgress(): () => void {
    const timer = setInterval(async () => {
      if (waiting.since === null || performance.now() - waiting.since < 400) {
        if (waiting.since === null) this.progress = null;
        return;
      }
      this.progress = await api.progress().catch(() => null);
    }, 300);
    return () => clearInterval(timer);
  }
}

/** The page. */
export const page = new Page();
