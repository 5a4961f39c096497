// Rows of a panel's table, loaded from the server.

import { api, isCancelled, messageOf } from "../api/client";
import type { Cell, Condition, Id, Range, View } from "../api/types";
import { keysOf, parts, valuesOf } from "../view/columns";
import { plainRows, Tree, type Page, type Row, type Source } from "./tree";

/** Request for the rows of a table. */
export interface TableQuery {
  trace: number;
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
    const next = new Tree(this.#source(query, controller.signal), keysOf(query.view.columns).length, query.open);
    try {
      await next.rows(0, 60);
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

  /** Expands or collapses a row. */
  async toggle(row: Row): Promise<void> {
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

  #source({ trace, view, range, filter, search }: TableQuery, signal: AbortSignal): Source {
    const [keys, values] = [keysOf(view.columns), valuesOf(view.columns)];
    const found = search !== "" && keys[0] !== undefined ? [{ column: keys[0], contains: search }] : [];
    const about = { table: view.table, range, filter: [...filter, ...found] };
    const { sort } = view;
    if (keys.length === 0) {
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
    return async (path, offset, first): Promise<Page> => {
      const request = { ...about, keys, path, aggregates: values, sort: order, offset, first };
      const answer = await api.pivot(trace, request, signal);
      if (path.length === 0) {
        this.totals = answer.totals;
        this.total = { rows: answer.rows, groups: answer.groups_total };
        this.onsql(answer.sql);
      }
      if (!answer.exact) this.exact = false;
      return { total: answer.groups_total, groups: answer.groups };
    };
  }
}
