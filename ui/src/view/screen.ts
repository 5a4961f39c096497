// State of the page as a small document. Links contain this document, and the history of the browser stores
// it.

import type { Condition, Graph, Id, Range, View } from "../api/types";
import { BAR } from "./columns";
import { choice, DRAWN, FUNCTIONS, KINDS } from "./graph";

/** View of a panel, with its display options. */
export interface Panel {
  view: View;
  title?: string;
  /** Ids of hidden series. */
  hidden?: Id[];
  /** True if the series for all groups without their own series is hidden. */
  restHidden?: boolean;
  /** Paths of expanded rows. A path has the ids of the row's keys, outermost first. */
  open?: Id[][];
  /** Paths of selected rows. */
  selected?: Id[][];
  show?: "both" | "graph" | "table";
  /** Time range with which a flame graph is compared. */
  compare?: Range;
  /** Id of the trace with which a flame graph is compared. */
  other?: number;
  /** True if a flame graph starts with the innermost calls. */
  inverted?: boolean;
  /** True if the axis of a graph of shares reaches from 0 to 100 %. */
  full?: boolean;
  /** True if the histograms of several traces are drawn over each other. */
  overlaid?: boolean;
  /** True if the tables of several traces are joined into one. */
  joined?: boolean;
  /** Height of the graph in pixels, if the user has changed it. */
  height?: number;
}

/** Finding, identified by its trace and its index. */
export interface FindingAt {
  trace: number;
  place: number;
}

/** Tab with a list of panels. */
export interface Tab {
  name: string;
  panels: Panel[];
  /** Finding whose evidence is shown in the panels. */
  finding?: FindingAt;
}

/** Wait that is explained, identified by thread and time. */
export interface WaitAt {
  trace: number;
  /** Row of the thread in `threads`; `null` if unknown. */
  thread_row: number | null;
  /** Id of the thread. It is used if the row is unknown. */
  thread_id: number | null;
  at_ns: number;
}

/** Text of the user about a time range of a trace. If the range has no length, it is about a moment. */
export interface Note {
  trace: number;
  range: Range;
  text: string;
}

/** State of the page. */
export interface Screen {
  page: "comparison" | "overview" | "analysis" | "sql";
  /** Ids of the visible traces. The first trace is the main one. */
  traces: number[];
  range: Range | null;
  selection: Range | null;
  filter: Condition[];
  tabs: Tab[];
  tab: number;
  wait: WaitAt | null;
  notes: Note[];
  query: string | null;
  /** True to show the result of `query` as a chart. */
  chart: boolean;
}

/** Returns the screen that is shown if the address contains none. `compared` is true if two traces are compared. */
export function firstScreen(traces: number[], compared = false): Screen {
  return {
    page: compared ? "comparison" : "overview",
    traces,
    range: null,
    selection: null,
    filter: [],
    tabs: [{ name: "Analysis 1", panels: [] }],
    tab: 0,
    wait: null,
    notes: [],
    query: null,
    chart: false,
  };
}

// Links are not trusted, because they may be old, incomplete or forged. Invalid parts are ignored.

type Loose = Record<string, unknown>;

const isObject = (value: unknown): value is Loose =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isId = (value: unknown): value is Id => value === null || Number.isSafeInteger(value);
const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 10_000;
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Maximum length of a list in a link. */
const MAX_LIST = 500;

/** Reads a time range. Returns `null` if it is invalid. */
export function readRange(value: unknown): Range | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [from, to] = value as unknown[];
  return isNumber(from) && isNumber(to) && from >= 0 && from < to ? [Math.round(from), Math.round(to)] : null;
}

function readPaths(value: unknown): Id[][] {
  return list(value)
    .filter((path): path is Id[] => Array.isArray(path) && path.length <= 16 && path.every(isId))
    .slice(0, MAX_LIST);
}

function readFilter(value: unknown): Condition | null {
  if (!isObject(value) || !isText(value.column)) return null;
  const filter: Condition = { column: value.column };
  if (Array.isArray(value.in)) filter.in = value.in.filter(isId).slice(0, MAX_LIST);
  if (Array.isArray(value.not_in)) filter.not_in = value.not_in.filter(isId).slice(0, MAX_LIST);
  if (Array.isArray(value.is)) filter.is = value.is.filter(isText).slice(0, MAX_LIST);
  if (Array.isArray(value.is_not)) filter.is_not = value.is_not.filter(isText).slice(0, MAX_LIST);
  if (isText(value.contains)) filter.contains = value.contains;
  if (isNumber(value.from)) filter.from = value.from;
  if (isNumber(value.to)) filter.to = value.to;
  return Object.keys(filter).length > 1 ? filter : null;
}

function readGraph(value: unknown): Graph {
  const graph: Loose = isObject(value) ? value : {};
  const read: Graph = { kind: choice(KINDS, graph.kind) ?? "none" };
  if (isText(graph.measure)) read.measure = graph.measure;
  const known = choice(FUNCTIONS, graph.function);
  if (known !== undefined) read.function = known;
  if (isText(graph.by)) read.by = graph.by;
  const drawn = choice(DRAWN, graph.as);
  if (drawn !== undefined) read.as = drawn;
  if (isText(graph.stack)) read.stack = graph.stack;
  return read;
}

/** Reads a view. Returns `null` if it contains no table. */
export function readView(value: unknown): View | null {
  if (!isObject(value) || !isText(value.table)) return null;
  const columns = list(value.columns).filter(isText).slice(0, 200);
  const bar = columns.indexOf(BAR);
  const sort = isObject(value.sort) && isText(value.sort.column) ? value.sort : null;
  return {
    table: value.table,
    columns: bar < 0 ? [BAR, ...columns] : columns.filter((column, place) => column !== BAR || place === bar),
    graph: readGraph(value.graph),
    range: readRange(value.range),
    filter: list(value.filter)
      .map(readFilter)
      .filter((filter) => filter !== null),
    sort: sort && { column: sort.column as string, descending: sort.descending === true },
  };
}

function readPanel(value: unknown): Panel | null {
  if (!isObject(value)) return null;
  const view = readView(value.view);
  if (view === null) return null;
  const panel: Panel = { view };
  if (isText(value.title)) panel.title = value.title;
  const hidden = list(value.hidden).filter(isId).slice(0, MAX_LIST);
  if (hidden.length > 0) panel.hidden = hidden;
  if (value.restHidden === true) panel.restHidden = true;
  const [open, selected] = [readPaths(value.open), readPaths(value.selected)];
  if (open.length > 0) panel.open = open;
  if (selected.length > 0) panel.selected = selected;
  const compare = readRange(value.compare);
  if (compare) panel.compare = compare;
  if (isNumber(value.other)) panel.other = value.other;
  if (value.inverted === true) panel.inverted = true;
  if (value.full === true) panel.full = true;
  if (value.overlaid === true) panel.overlaid = true;
  if (value.joined === true) panel.joined = true;
  if (isNumber(value.height) && value.height > 0) panel.height = Math.min(Math.round(value.height), 2000);
  if (value.show === "graph" || value.show === "table") panel.show = value.show;
  return panel;
}

/** Reads a note. Its range may be a moment. Returns `null` if it is invalid. */
function readNote(value: unknown): Note | null {
  if (!isObject(value) || !isNumber(value.trace) || !isText(value.text) || value.text === "") return null;
  const [from, to] = list(value.range);
  if (!isNumber(from) || !isNumber(to) || from < 0 || from > to) return null;
  return { trace: value.trace, range: [Math.round(from), Math.round(to)], text: value.text };
}

function readTab(value: unknown): Tab | null {
  if (!isObject(value)) return null;
  const panels = list(value.panels)
    .map(readPanel)
    .filter((panel) => panel !== null);
  const tab: Tab = { name: isText(value.name) ? value.name : "Analysis", panels: panels.slice(0, 40) };
  const finding = isObject(value.finding) ? value.finding : {};
  if (isNumber(finding.trace) && isNumber(finding.place)) tab.finding = { trace: finding.trace, place: finding.place };
  return tab;
}

/**
 * Reads a screen. Traces that are not open are ignored. `open` has the ids of the open traces, and `compared` is true
 * if two traces are compared.
 */
export function readScreen(value: unknown, open: readonly number[], compared = false): Screen | null {
  if (!isObject(value)) return null;
  const first = firstScreen(open.slice(0, 4));
  const pages = ["analysis", "sql", ...(compared ? ["comparison"] : [])] as Screen["page"][];
  const traces = list(value.traces).filter((trace): trace is number => isNumber(trace) && open.includes(trace));
  const tabs = list(value.tabs)
    .map(readTab)
    .filter((tab) => tab !== null)
    .slice(0, 40);
  const wait = isObject(value.wait) ? value.wait : null;
  const found = { ...first, tabs: tabs.length > 0 ? tabs : first.tabs };
  return {
    ...found,
    page: pages.find((page) => page === value.page) ?? "overview",
    traces: traces.length > 0 ? [...new Set(traces)] : first.traces,
    range: readRange(value.range),
    selection: readRange(value.selection),
    filter: list(value.filter)
      .map(readFilter)
      .filter((one) => one !== null),
    tab: isNumber(value.tab) ? Math.min(Math.max(Math.trunc(value.tab), 0), found.tabs.length - 1) : 0,
    wait:
      wait && isNumber(wait.trace) && isNumber(wait.at_ns) && (isNumber(wait.thread_row) || isNumber(wait.thread_id))
        ? {
            trace: wait.trace,
            thread_row: isNumber(wait.thread_row) ? wait.thread_row : null,
            thread_id: isNumber(wait.thread_id) ? wait.thread_id : null,
            at_ns: wait.at_ns,
          }
        : null,
    notes: list(value.notes)
      .map(readNote)
      .filter((note) => note !== null)
      .slice(0, MAX_LIST),
    query: isText(value.query) ? value.query : null,
    chart: value.chart === true,
  };
}
