// State of the page: the screen, the open traces, and methods that change them.

import { api, messageOf, waiting } from "../api/client";
import type { Condition, OwnPreset, Progress, Range, Session, View } from "../api/types";
import { download } from "../download";
import { longestWait, type Moment } from "../wait/moment";
import { chosenTheme, type Theme } from "../shell/theme";
import { joined } from "./filters";
import { screenOf } from "./fragment";
import { History } from "./history.svelte";
import { endOf, OpenTrace } from "./open_trace.svelte";
import { around, panned, same, within, zoomed } from "./range";
import { isWorthKeeping, readStored, stored, workspaceName } from "./workspace";
import { firstScreen, type FindingAt, type Panel, type Screen, type Tab } from "./screen";

/** Question for a short text. */
export interface Question {
  title: string;
  /** Suggested text. */
  text: string;
  onanswer: (text: string) => void;
  /** Called if the user removes the object that has the text, such as a note. */
  onremove?: () => void;
}

/** State of the page. Components read its fields, but change them only by calling its methods. */
class Page {
  session = $state.raw<Session | null>(null);
  /** Error because of which the page can show nothing. */
  failure = $state<string | null>(null);
  opened = $state.raw<Map<number, OpenTrace>>(new Map());
  /** Presets that the user has saved. */
  own = $state.raw<OwnPreset[]>([]);
  screen = $state.raw<Screen>(firstScreen([]));
  /** Time under the pointer, in nanoseconds since the trace's start. */
  hover = $state<number | null>(null);
  showMarks = $state(true);
  progress = $state.raw<Progress | null>(null);
  /** Text that the page asks the user for. */
  question = $state.raw<Question | null>(null);
  /** True if the tabs were restored from the last time that these traces were open. */
  hasRestored = $state(false);
  theme = $state<Theme>(chosenTheme());
  /** True if the list of keys is open. */
  help = $state(false);
  /** True if the command palette is open. */
  palette = $state(false);
  /** Message to the user, which is shown for some seconds. */
  notice = $state<string | null>(null);
  readonly history = new History(() => this.screen);
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  // Section: derived state.

  /** Returns the main trace, which is the first of the visible traces. */
  get main(): OpenTrace | undefined {
    return this.opened.get(this.screen.traces[0] ?? -1);
  }

  /** Returns the visible traces. */
  get shown(): OpenTrace[] {
    return this.screen.traces.flatMap((id) => this.opened.get(id) ?? []);
  }

  /** Returns the time range of all visible traces. It includes the last event. */
  get whole(): Range {
    return [0, Math.max(...this.shown.map(({ trace }) => endOf(trace)), 1000)];
  }

  /** Returns the visible time range. */
  get range(): Range {
    return this.screen.range ? within(this.screen.range, this.whole) : this.whole;
  }

  /** Returns the time range of tables: the selection, or the visible range if there is no selection. */
  get focus(): Range {
    return this.screen.selection ?? this.range;
  }

  /** Returns the panels of the current tab. */
  get panels(): Panel[] {
    return this.screen.tabs[this.screen.tab]?.panels ?? [];
  }

  // Section: start and navigation.

  /** Loads the session, and shows the screen that the address contains. */
  async start(): Promise<void> {
    try {
      const session = await api.session();
      this.opened = new Map(session.traces.map((trace) => [trace.id, new OpenTrace(trace)]));
      this.session = session;
      this.#readAddress();
      this.history.start(() => this.#readAddress());
      await this.#readWorkspace(session);
      this.own = await api.presets().catch(() => []);
    } catch (error) {
      this.failure = messageOf(error);
    }
  }

  #readAddress(): void {
    const open = [...this.opened.keys()];
    const compared = this.session?.comparison === true;
    const screen = screenOf(location.hash, open, compared);
    if (screen === null && location.hash.length > 1) this.say("This link is invalid. Showing the first page instead.");
    this.screen = screen ?? this.#initial ?? firstScreen(open.slice(0, 4), compared);
  }
  /**
   * Screen that is shown if the address contains no screen: the screen of a file or of a kept workspace. `null` for the
   * first screen.
   */
  #initial: Screen | null = null;

  /** Shows the screen of the file of `--view`. Without a file, shows the last screen of the same traces. */
  async #readWorkspace({ traces, view, comparison }: Session): Promise<void> {
    const open = [...this.opened.keys()];
    const given = view === null || view === undefined ? null : readStored(view, open, comparison);
    if (view !== null && view !== undefined && given === null) this.say("The file of --view is no view of laglab.");
    const document = given === null ? await api.kept(workspaceName(traces)).catch(() => null) : null;
    const kept = readStored(document, open, comparison);
    // The comparison and the overview show the findings, so the page starts there. The tabs are restored.
    this.#initial = given ?? (kept && { ...kept, page: comparison ? "comparison" : "overview" });
    if (this.#initial === null) return;
    this.hasRestored = given === null;
    // The user may have opened a link, or changed the screen, before the answer arrived.
    if (location.hash.length <= 1 && this.history.at === 0) this.screen = this.#initial;
  }

  /** Keeps the screen for the next time that the same traces are opened. */
  keepWorkspace(): void {
    const { session, screen } = this;
    if (!session || (!isWorthKeeping(screen) && !this.hasRestored)) return;
    const document = stored(session.traces, screen);
    api.keep(workspaceName(session.traces), document).catch((error: unknown) => {
      if (!this.#hasFailedToKeep) this.say(messageOf(error));
      this.#hasFailedToKeep = true;
    });
  }
  #hasFailedToKeep = false;

  /** Forgets the kept screen, and shows the first one. */
  forgetWorkspace(): void {
    if (!this.session) return;
    this.hasRestored = false;
    this.#initial = null;
    void api.keep(workspaceName(this.session.traces), null).catch(() => undefined);
    this.go(firstScreen([...this.opened.keys()].slice(0, 4), this.session.comparison));
  }

  /** Saves the screen as a file, which `laglab open --view` and the page open. */
  saveView(): void {
    if (!this.session) return;
    const { traces } = this.session;
    const text = JSON.stringify(stored(traces, this.screen), null, 1);
    download(new Blob([text], { type: "application/json" }), `${traces.map(({ name }) => name).join("-")}.view.json`);
    this.say("View saved. Open it with `laglab open TRACE --view FILE`, or drop it on this page.");
  }

  /** Shows the screen of a saved file. */
  async openView(file: File): Promise<void> {
    const open = [...this.opened.keys()];
    let screen: Screen | null = null;
    try {
      if (file.size <= 1 << 20)
        screen = readStored(JSON.parse(await file.text()), open, this.session?.comparison === true);
    } catch {
      // The message below says what to do.
    }
    if (screen) this.go(screen);
    else this.say(`${file.name} is no saved view. To open a trace, start \`laglab open\` with it.`);
  }

  /**
   * Changes the screen and adds a step to the history. Fast changes of the same `kind` belong to one step.
   */
  go(change: Partial<Screen>, kind = ""): void {
    this.history.record(kind, () => (this.screen = { ...this.screen, ...change }));
  }

  /** Shows a message to the user for some seconds. */
  say(text: string): void {
    this.notice = text;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => (this.notice = null), 6000);
  }

  // Section: time.

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

  // Section: notes.

  /** Asks for the text of a note about a time range or moment of a trace, and adds the note. */
  addNote(trace: number, range: Range): void {
    this.question = {
      title: "Note",
      text: "",
      onanswer: (text) => this.go({ notes: [...this.screen.notes, { trace, range, text }] }),
    };
  }

  /** Asks for another text of a note. The user can also remove the note. */
  editNote(place: number, text: string): void {
    const { notes } = this.screen;
    this.question = {
      title: "Note",
      text,
      onanswer: (next) => this.go({ notes: notes.with(place, { ...notes[place], text: next }) }),
      onremove: () => this.go({ notes: notes.filter((_, at) => at !== place) }),
    };
  }

  /** Copies a text to the clipboard. `done` is the message to the user. */
  async copy(text: string, done: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.say(done);
    } catch (error) {
      this.say(`Not copied: ${messageOf(error)}`);
    }
  }

  // Section: filters for all graphs.

  filterAll(filter: Condition): void {
    this.go({ filter: joined(this.screen.filter, filter) });
  }

  unfilterAll(place: number): void {
    this.go({ filter: this.screen.filter.filter((_, one) => one !== place) });
  }

  // Section: panels.

  /** Replaces the panels of the current tab. */
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
    panels.splice(place + by, 0, panel);
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

  // Section: findings.

  /**
   * Shows the evidence of a finding at its time, in a separate tab. If `evidence` is given, only the
   * evidence with this index is shown. Evidence without a view is shown as rows. If the finding is a wait,
   * the explanation of the wait also opens.
   */
  follow(opened: OpenTrace, place: number, evidence?: number): void {
    const finding = opened.explanation?.findings[place];
    if (!finding) return;
    const chosen = evidence === undefined ? finding.evidence : finding.evidence.slice(evidence, evidence + 1);
    const panels: Panel[] = chosen.flatMap(({ title, view, rows }) =>
      view && rows.length > 0 ? [{ view: { ...view, range: null }, title }] : [],
    );
    const during: Range | null = finding.during ? [finding.during.start, finding.during.end] : null;
    // If the views show the whole trace, the time range of the finding does not limit the visible range.
    const range = chosen.find(({ view }) => view?.range)?.view?.range ?? (panels.length === 0 ? during : null);
    const moment = longestWait(finding);
    const at: FindingAt = { trace: opened.trace.id, place };
    const tab: Tab = { name: this.nameOf(at), panels, finding: at };
    const known = this.screen.tabs.findIndex(({ finding }) => finding?.trace === at.trace && finding.place === place);
    // Remove tabs that are empty.
    const tabs =
      known < 0
        ? [...this.screen.tabs.filter((one) => one.panels.length > 0 || one.finding), tab]
        : this.screen.tabs.with(known, tab);
    this.go({
      range: range && around(range, this.whole),
      // A single moment has no length, so it cannot be selected.
      selection: range && range[1] > range[0] ? range : null,
      filter: [],
      wait: moment && { trace: at.trace, thread_row: null, ...moment },
      tabs,
      tab: known < 0 ? tabs.length - 1 : known,
      page: "analysis",
    });
  }

  /** Opens the explanation of a thread's state at a time. */
  explain(opened: OpenTrace, moment: Moment): void {
    this.go({ wait: { trace: opened.trace.id, thread_row: null, ...moment } });
  }

  /** Returns the name of a finding: its number, and the name of its trace if several traces are open. */
  nameOf({ trace, place }: FindingAt): string {
    const of = this.opened.size > 1 ? ` of ${this.opened.get(trace)?.trace.name ?? "?"}` : "";
    return `Finding ${place + 1}${of}`;
  }

  // Section: presets.

  async savePreset(name: string, view: View): Promise<void> {
    const others = this.own.filter((preset) => preset.name !== name);
    const own = [...others, { name, view }].sort((one, other) => one.name.localeCompare(other.name));
    await this.#saveOwn(own);
  }

  async dropPreset(name: string): Promise<void> {
    await this.#saveOwn(this.own.filter((preset) => preset.name !== name));
  }

  async #saveOwn(own: OwnPreset[]): Promise<void> {
    try {
      await api.savePresets(own);
      this.own = own;
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  // Section: progress.

  /**
   * Requests the progress from the server periodically while an answer takes long. Returns a function that
   * stops these requests.
   */
  watchProgress(): () => void {
    const poll = async () => {
      if (waiting.since === null) this.progress = null;
      else if (performance.now() - waiting.since >= 400) this.progress = await api.progress().catch(() => null);
    };
    const timer = setInterval(() => void poll(), 300);
    return () => clearInterval(timer);
  }
}

/** The state of this page. */
export const page = new Page();
