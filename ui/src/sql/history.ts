// History of queries, and queries that the user saved.

import type { NamedQuery } from "./examples";

/** Queries of the user, as the server keeps them. */
export interface Queries {
  /** Queries that ran, the latest first. */
  history: string[];
  saved: NamedQuery[];
}

/** Maximum numbers of queries that are kept. */
const [MAX_HISTORY, MAX_SAVED] = [100, 500];

/** Maximum length of a kept query. */
const LONGEST = 20_000;

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.trim() !== "" && value.length <= LONGEST;

/** Reads kept queries. Invalid parts are ignored. */
export function readQueries(document: unknown): Queries {
  const { history, saved } = (typeof document === "object" && document !== null ? document : {}) as {
    history?: unknown;
    saved?: unknown;
  };
  const all: unknown[] = Array.isArray(saved) ? saved : [];
  return {
    history: (Array.isArray(history) ? history : []).filter(isText).slice(0, MAX_HISTORY),
    saved: all
      .flatMap((one) => {
        const { name, query } = (typeof one === "object" && one !== null ? one : {}) as Partial<NamedQuery>;
        return isText(name) && isText(query) ? [{ name, query }] : [];
      })
      .slice(0, MAX_SAVED),
  };
}

/** Adds a query that ran to the history. The history contains a query only once. */
export function withRun({ history, saved }: Queries, query: string): Queries {
  if (!isText(query)) return { history, saved };
  return { history: [query, ...history.filter((other) => other !== query)].slice(0, MAX_HISTORY), saved };
}

/** Saves a query under a name. It replaces a query with the same name. */
export function withSaved({ history, saved }: Queries, one: NamedQuery): Queries {
  const others = saved.filter(({ name }) => name !== one.name);
  return { history, saved: [...others, one].sort((a, b) => a.name.localeCompare(b.name)) };
}
