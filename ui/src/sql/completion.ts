// What could be written at a place of a query.

import type { Catalogue } from "./answer";
import { meaning, nameIn, sourcesOf, statementAround } from "./statement";
import { KEYWORDS, type Token } from "./tokens";

/** One thing that could be written. */
export interface Choice {
  kind: "column" | "table" | "view" | "function" | "keyword" | "alias";
  name: string;
  /** Its type, table or parameters. */
  detail: string;
  about: string;
}

/** What could be written instead of the text between two places. */
export interface Completion {
  from: number;
  to: number;
  choices: Choice[];
}

/** More choices help nobody. */
const MOST = 100;

/** What could be written at a place; `asked` if the user wants to know whatever stands there. */
export function complete(catalogue: Catalogue, sql: string, caret: number, asked = false): Completion | null {
  const statement = statementAround(sql, caret);
  const before = statement.filter(({ from }) => from < caret);
  const last = before.at(-1);
  const isOpen = last && last.to >= caret && /^['"-]|^\/\*/.test(last.text);
  if (last && isOpen && (last.kind === "comment" || last.kind === "text" || last.kind === "quoted")) {
    const isClosed = last.to === caret && last.kind !== "comment" && last.text.length > 1 && last.text.at(-1) === last.text[0];
    if (!isClosed) return null;
  }
  const isWord = last !== undefined && last.to >= caret && (last.kind === "name" || last.kind === "keyword");
  const typed = isWord ? last.text.slice(0, caret - last.from) : "";
  const words = meaning(isWord ? before.slice(0, -1) : before);
  const isMember = words.at(-1)?.text === ".";
  if (typed === "" && !isMember && !asked) return null;
  const choices = ranked(isMember ? members(catalogue, statement, words) : all(catalogue, statement, words), typed);
  // What is there already needs no completion.
  if (choices.length === 0 || (!asked && choices.length === 1 && choices[0].name.toLowerCase() === typed.toLowerCase())) {
    return null;
  }
  return { from: caret - typed.length, to: isWord ? last.to : caret, choices };
}

/** Columns of what stands before the point. */
function members(catalogue: Catalogue, statement: Token[], words: Token[]): Choice[] {
  const owner = words.at(-2);
  if (!owner) return [];
  const name = nameIn(owner);
  const source = sourcesOf(statement).find((source) => source.name === name);
  return columnsOf(catalogue, source ? source.table : name);
}

function all(catalogue: Catalogue, statement: Token[], words: Token[]): Choice[] {
  const sources = sourcesOf(statement);
  const own: Choice[] = sources
    .filter(({ name, table }) => name !== table)
    .map(({ name, table }) => ({ kind: "alias", name, detail: table ?? "query", about: "" }));
  const tables: Choice[] = catalogue.tables.map(({ name, about, view }) => ({
    kind: view ? "view" : "table",
    name,
    detail: view ? "view" : "table",
    about: about ?? "",
  }));
  if (readsTable(words)) return [...own.filter(({ detail }) => detail === "query"), ...tables];
  const columns = sources.flatMap(({ table }) => columnsOf(catalogue, table));
  const seen = new Set<string>();
  const once = columns.filter(({ name }) => !seen.has(name) && seen.add(name));
  const functions: Choice[] = catalogue.functions.map(({ name, signature, about }) => ({
    kind: "function",
    name,
    detail: signature,
    about: about ?? "",
  }));
  const keywords: Choice[] = KEYWORDS.map((name) => ({ kind: "keyword", name, detail: "", about: "" }));
  return [...once, ...own, ...functions, ...keywords, ...tables];
}

function columnsOf(catalogue: Catalogue, table: string | null): Choice[] {
  const found = catalogue.tables.find(({ name }) => name === table);
  return (found?.columns ?? []).map(({ name, type, about }) => ({
    kind: "column",
    name,
    detail: type,
    about: about ?? "",
  }));
}

/** Whether a table is to come: after `FROM`, `JOIN`, or a comma among tables. */
function readsTable(words: Token[]): boolean {
  for (let at = words.length - 1; at >= 0; at--) {
    const { kind, text } = words[at];
    const word = text.toUpperCase();
    if (kind === "keyword" && word !== "AS") return at === words.length - 1 ? /^(FROM|JOIN)$/.test(word) : word === "FROM";
    // Past a table only a comma leads to another.
    if (at === words.length - 1 && text !== ",") return false;
    if (text === "(" || text === ")") return false;
  }
  return false;
}

/** Those that fit what is typed: the same first, then beginnings, parts after `_`, any part. */
function ranked(choices: Choice[], typed: string): Choice[] {
  const lower = typed.toLowerCase();
  const fit = ({ name }: Choice) => {
    const at = name.toLowerCase().indexOf(lower);
    if (at < 0) return at;
    if (at === 0) return name.length === typed.length ? 0 : 1;
    return name[at - 1] === "_" ? 2 : 3;
  };
  const fitting = choices.map((choice) => ({ choice, fit: fit(choice) })).filter(({ fit }) => fit >= 0);
  // The sort is stable: columns stay before functions, these before keywords.
  fitting.sort((one, other) => one.fit - other.fit);
  return fitting.slice(0, MOST).map(({ choice }) => choice);
}
