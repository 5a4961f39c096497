// Completion of SQL text.

import type { SqlCatalogue } from "../api/types";
import { significant, nameIn, sourcesOf, statementAround } from "./statement";
import { KEYWORDS, type Token } from "./tokens";

/** Suggested text. */
export interface Choice {
  kind: "column" | "table" | "view" | "function" | "keyword" | "alias";
  name: string;
  /** Type of a column, table of an alias, or parameters of a function. */
  detail: string;
  about: string;
}

/** Suggestions that can replace the text between two positions. */
export interface Completion {
  from: number;
  to: number;
  choices: Choice[];
}

/** Maximum number of suggestions. */
const MAX_CHOICES = 100;

/**
 * Returns suggestions at a position; `null` if there are none. `requested` is true if the user pressed the
 * key for suggestions.
 */
export function complete(catalogue: SqlCatalogue, sql: string, caret: number, requested = false): Completion | null {
  const statement = statementAround(sql, caret);
  const before = statement.filter(({ from }) => from < caret);
  const last = before.at(-1);
  const isOpen = last && last.to >= caret && /^['"-]|^\/\*/.test(last.text);
  if (last && isOpen && (last.kind === "comment" || last.kind === "text" || last.kind === "quoted")) {
    const isClosed =
      last.to === caret && last.kind !== "comment" && last.text.length > 1 && last.text.at(-1) === last.text[0];
    if (!isClosed) return null;
  }
  const isWord = last !== undefined && last.to >= caret && (last.kind === "name" || last.kind === "keyword");
  const typed = isWord ? last.text.slice(0, caret - last.from) : "";
  const words = significant(isWord ? before.slice(0, -1) : before);
  const isMember = words.at(-1)?.text === ".";
  if (typed === "" && !isMember && !requested) return null;
  const choices = ranked(isMember ? members(catalogue, statement, words) : all(catalogue, statement, words), typed);
  // Do not suggest a word that is already complete.
  if (
    choices.length === 0 ||
    (!requested && choices.length === 1 && choices[0].name.toLowerCase() === typed.toLowerCase())
  ) {
    return null;
  }
  return { from: caret - typed.length, to: isWord ? last.to : caret, choices };
}

/** Returns the columns of the table whose name is before the point. */
function members(catalogue: SqlCatalogue, statement: Token[], words: Token[]): Choice[] {
  const owner = words.at(-2);
  if (!owner) return [];
  const name = nameIn(owner);
  const source = sourcesOf(statement).find((source) => source.name === name);
  return columnsOf(catalogue, source ? source.table : name);
}

/** Returns all words that can be next, in the order of preference. */
function all(catalogue: SqlCatalogue, statement: Token[], words: Token[]): Choice[] {
  const sources = sourcesOf(statement);
  const own: Choice[] = sources
    .filter(({ name, table }) => name !== table)
    .map(({ name, table }) => ({ kind: "alias", name, detail: table ?? "query", about: "" }));
  const tables: Choice[] = catalogue.tables.map(({ name, about, view }) => ({
    kind: view ? "view" : "table",
    name,
    detail: view ? "view" : "table",
    about,
  }));
  if (readsTable(words)) return [...own.filter(({ detail }) => detail === "query"), ...tables];
  const columns = sources.flatMap(({ table }) => columnsOf(catalogue, table));
  const seen = new Set<string>();
  const once = columns.filter(({ name }) => !seen.has(name) && seen.add(name));
  const functions: Choice[] = catalogue.functions.map(({ name, signature, about }) => ({
    kind: "function",
    name,
    detail: signature,
    about,
  }));
  const keywords: Choice[] = KEYWORDS.map((name) => ({ kind: "keyword", name, detail: "", about: "" }));
  return [...once, ...own, ...functions, ...keywords, ...tables];
}

function columnsOf(catalogue: SqlCatalogue, table: string | null): Choice[] {
  const found = catalogue.tables.find(({ name }) => name === table);
  return (found?.columns ?? []).map(({ name, type, about }) => ({
    kind: "column",
    name,
    detail: type,
    about: about ?? "",
  }));
}

/** Returns true if a table must be next: after `FROM`, `JOIN`, or a comma between tables. */
function readsTable(words: Token[]): boolean {
  for (let at = words.length - 1; at >= 0; at--) {
    const { kind, text } = words[at];
    const word = text.toUpperCase();
    if (kind === "keyword" && word !== "AS")
      return at === words.length - 1 ? /^(FROM|JOIN)$/.test(word) : word === "FROM";
    // After the name of a table, another table can follow only after a comma.
    if (at === words.length - 1 && text !== ",") return false;
    if (text === "(" || text === ")") return false;
  }
  return false;
}

/**
 * Sorts the matching suggestions: first equal text, then prefixes, then matches after `_`, then all other
 * matches.
 */
function ranked(choices: Choice[], typed: string): Choice[] {
  const lower = typed.toLowerCase();
  const fit = ({ name }: Choice) => {
    const at = name.toLowerCase().indexOf(lower);
    if (at < 0) return at;
    if (at === 0) return name.length === typed.length ? 0 : 1;
    return name[at - 1] === "_" ? 2 : 3;
  };
  const fitting = choices.map((choice) => ({ choice, fit: fit(choice) })).filter(({ fit }) => fit >= 0);
  // The sort is stable, so columns stay before functions, and functions before keywords.
  fitting.sort((one, other) => one.fit - other.fit);
  return fitting.slice(0, MAX_CHOICES).map(({ choice }) => choice);
}
