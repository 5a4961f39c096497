// The rows of a grouped table that can be seen: groups whose children are opened, in pages that are
// asked for when they are looked at. A level of a million groups costs what is looked at.

import type { Cell, Group, Id } from "../api/types";

/** Rows of one level, as the server gives them. */
export interface Page {
  total: number;
  groups: Group[];
}

/** Gives rows of the level below a path. */
export type Source = (path: Id[], offset: number, first: number) => Promise<Page>;

/** Rows asked for at once. */
export const PAGE = 200;

/** A row that can be seen. */
export interface Row {
  /** Ids of its keys, from the first. */
  path: Id[];
  group: Group;
  /** Whether there is something below it, and whether that is shown. */
  opens: boolean;
  open: boolean;
  /** Its place among its siblings, and how many these are. */
  place: number;
  siblings: number;
}

/** A path as text, to compare. */
export const pathName = (path: readonly Id[]): string => path.join("/");

class Level {
  total = 0;
  loaded = false;
  readonly pages = new Map<number, Group[]>();
  readonly asked = new Map<number, Promise<void>>();
  /** Levels of opened rows, by the rows' places. */
  readonly below = new Map<number, Level>();

  constructor(readonly path: Id[]) {}

  /** How many rows it shows, with all that is opened below. */
  count(): number {
    let sum = this.total;
    for (const level of this.below.values()) sum += level.count();
    return sum;
  }
}

/** The tree of a table. `depth` is how many keys there are. */
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

  /** How many rows can be seen, as far as is known. */
  get count(): number {
    return this.#root.count();
  }

  /** Paths of the rows that are opened. */
  get opened(): Id[][] {
    return [...this.#open].map((name) => name.split("/").map((id) => (id === "" ? null : Number(id))));
  }

  /** The rows `from` to before `to`; fewer at the end. */
  async rows(from: number, to: number): Promise<Row[]> {
    // A page that comes may open rows, which makes others of those asked for visible.
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

  /** The rows that are there already, without asking. */
  known(from: number, to: number): Row[] {
    const rows: Row[] = [];
    if (this.#root.loaded) this.#collect(this.#root, from, to, rows, null);
    return rows;
  }

  /** Opens or closes a row. */
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
      const place = this.#placeOf(level, path[step]!);
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
    // It may have been closed again meanwhile.
    if (this.#open.has(pathName(path))) level.below.set(place, below);
  }

  #load(level: Level, page: number): Promise<void> {
    const before = level.asked.get(page);
    if (before !== undefined) return before;
    const asked = (async () => {
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
        level.asked.delete(page);
        throw error;
      }
    })();
    level.asked.set(page, asked);
    return asked;
  }

  #isLeaf(path: readonly Id[], group: Group): boolean {
    return group.leaf || path.length >= this.depth;
  }

  /** Puts the level's rows `from` to before `to` (counted with what is opened) into `rows`. */
  #collect(level: Level, from: number, to: number, rows: Row[], missing: Promise<void>[] | null): void {
    const below = [...level.below.entries()].sort(([one], [other]) => one - other);
    let at = 0; // Row number of the sibling at `place`.
    let place = 0;
    const take = (until: number) => {
      // Siblings `place` to `until`, none of which but the last is opened.
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
        const asked = this.#load(level, page);
        if (!missing.includes(asked)) missing.push(asked);
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

/** Rows that are not grouped, as a level of a tree: their ids are their places. */
export function plainRows(total: number, offset: number, values: Cell[][]): Page {
  return {
    total,
    groups: values.map((cells, place) => ({ id: offset + place, label: "", rows: 1, values: cells, leaf: true })),
  };
}
