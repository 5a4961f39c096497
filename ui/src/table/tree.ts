// Visible rows of a grouped table: groups, and the children of expanded groups. Rows are loaded in pages when they
// become visible, so a level with a million groups costs only as much as its visible pages.

import type { Cell, Id, PivotGroup } from "../api/types";
import type { Moment } from "../wait/moment";

/** Group, frame of a stack, or single row. */
export interface Item extends PivotGroup {
  /** Thread and time of a single row, if it has both. */
  moment?: Moment | null;
}

/** Some successive rows of one level. */
export interface Page {
  total: number;
  groups: Item[];
}

/** Function that loads rows of the level below a path. */
export type Source = (path: Id[], offset: number, first: number) => Promise<Page>;

/** Number of rows in a page. */
export const PAGE = 200;

/** Row that is visible. */
export interface Row {
  /** Ids of the row's keys, outermost first. */
  path: Id[];
  group: Item;
  /** True if the row can be expanded. */
  opens: boolean;
  /** True if the row is expanded. */
  open: boolean;
  /** Index of the row among the rows with the same parent. */
  place: number;
  /** Number of rows with the same parent, including this row. */
  siblings: number;
}

/** Returns a path as text, which is used to compare paths. */
export const pathName = (path: readonly Id[]): string => path.join("/");

class Level {
  total = 0;
  loaded = false;
  readonly pages = new Map<number, Item[]>();
  readonly requested = new Map<number, Promise<void>>();
  /** Levels below expanded rows, by the index of the expanded row. */
  readonly below = new Map<number, Level>();

  constructor(readonly path: Id[]) {}

  /** Returns the number of visible rows, including rows below expanded rows. */
  count(): number {
    let sum = this.total;
    for (const level of this.below.values()) sum += level.count();
    return sum;
  }
}

/** Tree of a table's rows. `depth` is the maximum length of a path. */
export class Tree {
  readonly #root = new Level([]);
  readonly #open: Set<string>;

  constructor(
    private readonly source: Source,
    private readonly depth: number,
    open: readonly Id[][] = [],
  ) {
    this.#open = new Set(open.map(pathName));
  }

  /** Returns the number of visible rows. Levels that are not loaded yet do not count. */
  get count(): number {
    return this.#root.count();
  }

  /** Returns the paths of expanded rows. */
  get opened(): Id[][] {
    return [...this.#open].map((name) => name.split("/").map((id) => (id === "" ? null : Number(id))));
  }

  /**
   * Returns the visible rows from index `from` to the index before `to`, after loading them. At the end of
   * the table, returns fewer rows.
   */
  async rows(from: number, to: number): Promise<Row[]> {
    // A loaded page may contain expanded rows. Then other rows move to the requested indexes.
    for (let round = 0; round < 64; round++) {
      const missing: Promise<void>[] = [];
      const rows: Row[] = [];
      if (!this.#root.loaded) missing.push(this.#load(this.#root, 0));
      else this.#collect(this.#root, from, to, rows, missing);
      if (missing.length === 0) return rows;
      await Promise.all(missing);
    }
    return [];
  }

  /** Returns the rows that are already loaded. */
  known(from: number, to: number): Row[] {
    const rows: Row[] = [];
    if (this.#root.loaded) this.#collect(this.#root, from, to, rows, null);
    return rows;
  }

  /** Returns the loaded rows on the path to a row, outermost first. */
  itemsOn(path: readonly Id[]): Item[] {
    return path.flatMap((_, at) => {
      const found = this.#find(path.slice(0, at + 1));
      return found?.level.pages.get(Math.floor(found.place / PAGE))?.[found.place % PAGE] ?? [];
    });
  }

  /** Expands or collapses a row. */
  async toggle(path: readonly Id[]): Promise<void> {
    const name = pathName(path);
    const found = this.#find(path);
    if (this.#open.has(name)) {
      this.#open.delete(name);
      found?.level.below.delete(found.place);
    } else {
      this.#open.add(name);
      if (found) await this.#openAt(found.level, found.place, [...path]);
    }
  }

  #find(path: readonly Id[]): { level: Level; place: number } | null {
    let level = this.#root;
    for (let step = 0; ; step++) {
      const place = this.#placeOf(level, path[step]);
      if (place === null) return null;
      if (step === path.length - 1) return { level, place };
      const below = level.below.get(place);
      if (below === undefined) return null;
      level = below;
    }
  }

  #placeOf(level: Level, id: Id): number | null {
    for (const [page, groups] of level.pages) {
      const place = groups.findIndex((group) => group.id === id);
      if (place >= 0) return page * PAGE + place;
    }
    return null;
  }

  async #openAt(level: Level, place: number, path: Id[]): Promise<void> {
    const below = new Level(path);
    await this.#load(below, 0);
    // The user may have collapsed the row while it was loaded.
    if (this.#open.has(pathName(path))) level.below.set(place, below);
  }

  #load(level: Level, page: number): Promise<void> {
    const before = level.requested.get(page);
    if (before !== undefined) return before;
    const request = (async () => {
      try {
        const { total, groups } = await this.source(level.path, page * PAGE, PAGE);
        level.total = total;
        level.loaded = true;
        level.pages.set(page, groups);
        const opened: Promise<void>[] = [];
        groups.forEach((group, place) => {
          const path = [...level.path, group.id];
          if (!this.#isLeaf(path, group) && this.#open.has(pathName(path))) {
            opened.push(this.#openAt(level, page * PAGE + place, path));
          }
        });
        await Promise.all(opened);
      } catch (error) {
        level.requested.delete(page);
        throw error;
      }
    })();
    level.requested.set(page, request);
    return request;
  }

  #isLeaf(path: readonly Id[], group: Item): boolean {
    return group.leaf || path.length >= this.depth;
  }

  /** Appends the visible rows of a level, from index `from` to the index before `to`, to `rows`. */
  #collect(level: Level, from: number, to: number, rows: Row[], missing: Promise<void>[] | null): void {
    const below = [...level.below.entries()].sort(([one], [other]) => one - other);
    let at = 0; // Index of the visible row that shows the sibling `place`.
    let place = 0;
    const take = (until: number) => {
      // Takes the siblings from `place` up to, but not including, `until`. At most the last of these siblings
      // is expanded.
      const first = Math.max(place, place + from - at);
      const last = Math.min(until, place + to - at);
      for (let one = first; one < last; one++) this.#row(level, one, rows, missing);
      at += until - place;
      place = until;
    };
    for (const [opened, inside] of below) {
      take(opened + 1);
      const count = inside.count();
      if (at < to && at + count > from) this.#collect(inside, from - at, to - at, rows, missing);
      at += count;
      if (at >= to) return;
    }
    take(level.total);
  }

  #row(level: Level, place: number, rows: Row[], missing: Promise<void>[] | null): void {
    const page = Math.floor(place / PAGE);
    const groups = level.pages.get(page);
    if (groups === undefined) {
      if (missing !== null) {
        const request = this.#load(level, page);
        if (!missing.includes(request)) missing.push(request);
      }
      return;
    }
    const group = groups[place % PAGE];
    if (group === undefined) return;
    const path = [...level.path, group.id];
    const opens = !this.#isLeaf(path, group);
    rows.push({ path, group, opens, open: opens && level.below.has(place), place, siblings: level.total });
  }
}

/** Returns single rows in the form of a level of a tree. Their ids are their indices. */
export function plainRows(total: number, offset: number, values: Cell[][]): Page {
  return {
    total,
    groups: values.map((cells, place) => ({ id: offset + place, label: "", rows: 1, values: cells, leaf: true })),
  };
}
