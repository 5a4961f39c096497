// Rows of a panel's table, loaded from the server.

import { api, isCancelled, messageOf } from "../api/client";
import type { Cell, Condition, FlameAnswer, Id, Range, TableInfo, View } from "../api/types";
import { moment } from "../format";
import { keysOf, parts, pathFilter, stackOf, valuesOf } from "../view/columns";
import { callRows, joinedCalls } from "./stack_rows";
import { plainRows, Tree, type Item, type Page, type Row, type Source } from "./tree";

/** Maximum number of frames in a stack that can be opened. */
const MAX_FRAMES = 250;

/** Columns that a row needs to lead to the explanation of its thread. */
const MOMENT = ["thread_id", "start_ns", "ready_ns"];

/** Request for the rows of a table. */
export interface TableQuery {
  trace: number;
  table: TableInfo;
  view: View;
  range: Range | null;
  filter: Condition[];
  /** Text that labels of the first key must contain. */
  search: string;
  /** Paths of expanded rows. */
  open: readonly Id[][];
}

/**
 * Loaded rows of a table. The rows of the previous query stay until the first rows of the next query are
 * loaded.
 */
export class TableRows {
  /** Number of rows, and number of groups in the first level; `null` until they are loaded. */
  total = $state<{ rows: number; groups: number } | null>(null);
  /** True if percentiles are exact. */
  exact = $state(true);
  failure = $state<string | null>(null);
  /** Columns of the loaded rows. */
  columns: string[] = [];
  /** Totals of the columns right of the bar. */
  totals: Cell[] = [];
  #tree: Tree | null = null;
  #controller: AbortController | null = null;
  /** Paths of rows that were expanded or collapsed since the current query began. */
  #toggled: Id[][] = [];

  constructor(private readonly onsql: (sql: string | null) => void) {}

  /** Returns the number of visible rows. */
  get count(): number {
    return this.#tree?.count ?? 0;
  }

  /** Returns the paths of expanded rows. */
  get opened(): Id[][] {
    return this.#tree?.opened ?? [];
  }

  /**
   * Loads the first rows of a query. Returns false if loading failed, or if a newer query has replaced this
   * one.
   */
  async load(query: TableQuery): Promise<boolean> {
    this.cancel();
    const controller = (this.#controller = new AbortController());
    this.exact = true;
    this.#toggled = [];
    const keys = keysOf(query.view.columns);
    // Frames of stacks, or single rows, are below the groups.
    const below = keys.length === 0 ? 0 : stackOf(query.table, keys) ? MAX_FRAMES : 1;
    const next = new Tree(this.#source(query, controller.signal), keys.length + below, query.open);
    try {
      await next.rows(0, 60);
      // The user can expand and collapse the rows of the previous query while these rows are loaded.
      for (const path of this.#toggled) await next.toggle(path);
    } catch (error) {
      if (this.#controller === controller) this.#fail(error);
      return false;
    }
    if (this.#controller !== controller) return false;
    this.failure = null;
    this.#tree = next;
    this.columns = query.view.columns;
    return true;
  }

  /**
   * Returns the visible rows from index `from` to the index before `to`. Rows that are not loaded yet are
   * loaded first.
   */
  async rows(from: number, to: number): Promise<Row[]> {
    try {
      return (await this.#tree?.rows(from, to)) ?? [];
    } catch (error) {
      this.#fail(error);
      return [];
    }
  }

  /** Returns those visible rows from index `from` to the index before `to` that are loaded. */
  known(from: number, to: number): Row[] {
    return this.#tree?.known(from, to) ?? [];
  }

  /** Returns the loaded rows on the path to a row, outermost first. */
  itemsOn(path: readonly Id[]): Item[] {
    return this.#tree?.itemsOn(path) ?? [];
  }

  /** Expands or collapses a row. `opened` changes at once, the visible rows when the promise is fulfilled. */
  async toggle(row: Row): Promise<void> {
    this.#toggled.push(row.path);
    try {
      await this.#tree?.toggle(row.path);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Cancels the current query. */
  cancel(): void {
    this.#controller?.abort();
  }

  #fail(error: unknown): void {
    if (!isCancelled(error)) this.failure = messageOf(error);
  }

  #source({ trace, table, view, range, filter, search }: TableQuery, signal: AbortSignal): Source {
    const [all, values] = [keysOf(view.columns), valuesOf(view.columns)];
    const stack = stackOf(table, all);
    const keys = all.filter((key) => key !== stack);
    const found = search !== "" && keys[0] !== undefined ? [{ column: keys[0], contains: search }] : [];
    const about = { table: view.table, range, filter: [...filter, ...found] };
    const { sort } = view;
    if (all.length === 0) {
      const columns = values.map((column) => parts(column).name);
      const names = [...new Set(columns.filter((column) => column !== "rows"))];
      const isByColumn = sort && sort.column !== "rows" && sort.column !== "key";
      const order = isByColumn ? { ...sort, column: parts(sort.column).name } : null;
      return async (_, offset, first) => {
        const answer = await api.rows(trace, { ...about, columns: names, sort: order, offset, first }, signal);
        this.onsql(answer.sql);
        this.total = { rows: answer.rows, groups: answer.rows };
        this.totals = values.map(() => "");
        const cells = answer.values.map((row) => columns.map((column) => row[names.indexOf(column)] ?? null));
        return plainRows(answer.rows, offset, cells);
      };
    }
    const order = sort ? { by: sort.column, descending: sort.descending } : null;
    const inGroup = (path: Id[]) => ({ ...about, filter: [...about.filter, ...pathFilter(keys, path)] });
    const calls = new Map<string, Promise<ReturnType<typeof joinedCalls>>>();

    const sums = values.filter((column) => parts(column).aggregate === "sum" && !column.startsWith("time:"));
    /** Returns the calls of a group's stacks. Their first weight is the number of rows, then come the `sums`. */
    const stacksOf = (path: Id[]) => {
      const name = path.join("/");
      let known = calls.get(name);
      if (!known) {
        const weights = ["rows", ...sums.map((column) => parts(column).name)];
        const ask = (weight: string): Promise<FlameAnswer> =>
          api.flame(trace, { ...inGroup(path), stack: stack!, weight }, signal);
        known = Promise.all(weights.map(ask)).then(joinedCalls);
        known.catch(() => calls.delete(name));
        calls.set(name, known);
      }
      return known;
    };
    const framesBelow = async (path: Id[], offset: number, first: number): Promise<Page> => {
      const trees = values.map((column) =>
        column === "rows" ? 0 : sums.includes(column) ? sums.indexOf(column) + 1 : null,
      );
      const by = sort ? (trees[values.indexOf(sort.column)] ?? 0) : 0;
      const rows = callRows(await stacksOf(path.slice(0, keys.length)), path.slice(keys.length), trees, by);
      return { total: rows.length, groups: rows.slice(offset, offset + first) };
    };
    const rowsBelow = async (path: Id[], offset: number, first: number): Promise<Page> => {
      const names = values.map((column) => parts(column).name);
      const known = (name: string) => table.columns.some((column) => column.name === name) && name !== "time";
      const wanted = [...new Set([table.time, ...names, ...MOMENT].filter(known))];
      const by = sort && known(parts(sort.column).name) ? { ...sort, column: parts(sort.column).name } : null;
      const request = { ...inGroup(path), columns: wanted, sort: by, offset, first };
      const answer = await api.rows(trace, request, signal);
      const groups = answer.values.map((cells, place): Item => {
        const cell = (name: string) => cells[wanted.indexOf(name)] ?? null;
        const at = cell(table.time);
        const [thread_id, start, ready] = MOMENT.map(cell);
        const isMoment = typeof thread_id === "number" && typeof start === "number";
        return {
          id: offset + place,
          label: typeof at === "number" ? `at ${moment(at)}` : `row ${offset + place + 1}`,
          rows: 1,
          values: names.map((name) => (name === "rows" ? 1 : cell(name))),
          leaf: true,
          moment: isMoment
            ? { thread_id, at_ns: start - (typeof ready === "number" ? Math.round(ready / 2) : 0) }
            : null,
        };
      });
      return { total: answer.rows, groups };
    };
    return async (path, offset, first): Promise<Page> => {
      if (path.length >= keys.length) {
        const page = await (stack ? framesBelow : rowsBelow)(path, offset, first);
        // If the table groups by stacks or rows only, no group gives the totals, so they are requested separately.
        if (path.length === 0) {
          const totals = await api.pivot(trace, { ...about, keys: [], path: [], aggregates: values, first: 1 }, signal);
          this.totals = totals.totals;
          this.total = { rows: totals.rows, groups: page.total };
          this.onsql(totals.sql);
        }
        return page;
      }
      const request = { ...about, keys, path, aggregates: values, sort: order, offset, first };
      const answer = await api.pivot(trace, request, signal);
      if (path.length === 0) {
        this.totals = answer.totals;
        this.total = { rows: answer.rows, groups: answer.groups_total };
        this.onsql(answer.sql);
      }
      if (!answer.exact) this.exact = false;
      // Groups of the last key can be expanded. Their stacks or their rows are below them.
      return { total: answer.groups_total, groups: answer.groups.map((group) => ({ ...group, leaf: false })) };
    };
  }
}
