// Entries of the command palette.

import type { PivotGroup } from "../api/types";
import { duration } from "../format";
import { plainView } from "../view/columns";
import type { OpenTrace } from "../view/open_trace.svelte";
import { parseTime } from "../view/range";
import { fit } from "../view/search";
import { page } from "../view/state.svelte";
import { wpaNames } from "../view/wpa_names";
import { actions } from "./actions";

/** Kinds of entries, in the order of the palette. */
export const KINDS = [
  "Action",
  "Finding",
  "Graph",
  "Process",
  "Thread",
  "Function",
  "Tab",
  "Table",
  "SQL table",
] as const;

/** Entry of the palette. */
export interface Entry {
  kind: (typeof KINDS)[number];
  title: string;
  /** Text next to the title. */
  detail: string;
  key?: string | undefined;
  choose: () => void;
}

interface Candidate extends Entry {
  /** Other names by which the entry is found. */
  names: readonly string[];
}

/** Maximum number of entries of a kind. */
const MAX_OF_KIND = 8;

/** Returns the entries that the page knows without a request, and that fit a text. The best entries come first. */
export function localEntries(text: string): Entry[] {
  const all: Candidate[] = [...actionEntries(), ...findings(), ...graphs(), ...tabs(), ...tables()];
  const time = parseTime(text);
  const found: Entry[] = time === null || !/\d/.test(text) ? [] : [goTo(time)];
  const fitting = all
    .map((entry) => ({ entry, fit: fit(text, [entry.title, ...entry.names]) }))
    .filter(({ fit }) => fit > 0)
    .sort((one, other) => other.fit - one.fit);
  const counts = new Map<string, number>();
  for (const { entry } of fitting) {
    const count = counts.get(entry.kind) ?? 0;
    counts.set(entry.kind, count + 1);
    if (count < MAX_OF_KIND) found.push(entry);
  }
  return found;
}

function goTo(time: number): Entry {
  const [from, to] = page.range;
  const half = Math.min((to - from) / 2, 1e9);
  return {
    kind: "Action",
    title: `Go to ${duration(time)}`,
    detail: "zoom to the time around it",
    choose: () => page.zoomTo([time - half, time + half]),
  };
}

function actionEntries(): Candidate[] {
  return actions().map(({ title, detail = "", key, choose }) => ({
    kind: "Action",
    title,
    detail,
    key,
    names: [],
    choose,
  }));
}

function findings(): Candidate[] {
  return page.shown.flatMap((opened) =>
    (opened.explanation?.findings ?? []).map(({ sentence, why, theory }, place): Candidate => ({
      kind: "Finding",
      title: `${place + 1} ${sentence}`,
      detail: page.shown.length > 1 ? opened.trace.name : "",
      names: [...(why ?? []), theory],
      choose: () => page.follow(opened, place),
    })),
  );
}

function graphs(): Candidate[] {
  const opened = page.main;
  const own = page.own.map(({ name, view }): Candidate => ({
    kind: "Graph",
    title: name,
    detail: "mine",
    names: [view.table],
    choose: () => page.addPanel(view, name),
  }));
  const builtIn = (opened?.presets ?? []).flatMap(({ name, group, view }): Candidate[] => {
    const table = opened?.table(view.table);
    if (table?.recorded === false) return [];
    return [
      {
        kind: "Graph",
        title: name,
        detail: table?.title ?? group,
        names: [group, view.table, table?.title ?? "", ...wpaNames(name)],
        choose: () => page.addPanel(view, name),
      },
    ];
  });
  return [...own, ...builtIn];
}

function tabs(): Candidate[] {
  return page.screen.tabs.map((tab, place) => ({
    kind: "Tab",
    title: tab.name,
    detail: `${tab.panels.length} ${tab.panels.length === 1 ? "graph" : "graphs"}`,
    names: [],
    choose: () => page.go({ tab: place, page: "analysis" }),
  }));
}

function tables(): Candidate[] {
  const opened = page.main;
  return (opened?.tables ?? []).flatMap((table): Candidate[] => {
    const shown: Candidate = {
      kind: "Table",
      title: table.title,
      detail: table.name,
      names: [table.name],
      choose: () => page.addPanel(plainView(table, opened?.presets), table.title),
    };
    const query = `SELECT * FROM ${table.name} LIMIT 100`;
    const sql: Candidate = {
      kind: "SQL table",
      title: table.name,
      detail: "the first rows in SQL",
      names: [table.title, "sql"],
      choose: () => page.go({ page: "sql", query }),
    };
    return [...(table.recorded === false ? [] : [shown]), ...(page.session?.sql ? [sql] : [])];
  });
}

/** Key of a table whose values the palette finds on the server. */
export interface Sought {
  kind: Entry["kind"];
  table: string;
  column: string;
  /** Name of the built-in view that shows a found value. */
  preset: string;
}

/** Keys that are searched. A table is searched only if it has rows. */
export const SOUGHT: Sought[] = [
  { kind: "Process", table: "cpu_runs", column: "process", preset: "Utilization by process, thread" },
  { kind: "Thread", table: "cpu_runs", column: "thread", preset: "States of threads" },
  { kind: "Function", table: "samples", column: "function", preset: "Samples by process, module, function" },
];

/** Returns an entry for a value of a key. It opens the view of the key with the rows of the value only. */
export function valueEntry(opened: OpenTrace, { kind, table, column, preset }: Sought, group: PivotGroup): Entry {
  const known = opened.presets.find(({ name }) => name === preset);
  const info = opened.table(table)!;
  const view = known?.view ?? plainView(info, opened.presets);
  const filter = [...(view.filter ?? []).filter((one) => one.column !== column), { column, is: [group.label] }];
  return {
    kind,
    title: group.label,
    detail: `${group.rows.toLocaleString("en")} rows of ${info.title}`,
    choose: () => page.addPanel({ ...view, filter }, `${group.label}: ${known?.name ?? info.title}`),
  };
}
