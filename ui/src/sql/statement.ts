// Which tables a statement speaks of, and by which names.

import { tokens, type Token } from "./tokens";

/** A name that columns may be asked of. */
export interface Source {
  /** The alias, or the table's name. */
  name: string;
  /** The table; nothing if it is a query of the statement's own. */
  table: string | null;
}

/** A token that means something. */
export function meaning(tokens: Token[]): Token[] {
  return tokens.filter(({ kind }) => kind !== "space" && kind !== "comment");
}

/** The name in a token, without quotes; plain names are the same in any case. */
export function nameIn({ kind, text }: Token): string {
  return kind === "quoted" ? text.slice(1, -1).replaceAll('""', '"') : text.toLowerCase();
}

/** The statement around a place of a text, from its first to its last token. */
export function statementAround(sql: string, place: number): Token[] {
  let statement: Token[] = [];
  for (const token of tokens(sql)) {
    if (token.kind === "sign" && token.text === ";") {
      if (token.from >= place) return statement;
      statement = [];
    } else {
      statement.push(token);
    }
  }
  return statement;
}

const isName = (token: Token | undefined) => token?.kind === "name" || token?.kind === "quoted";
const isWord = (token: Token | undefined, word: string) =>
  token?.kind === "keyword" && token.text.toUpperCase() === word;

/** What a statement reads, from `FROM` and `JOIN` on, and the queries it names by `WITH`. */
export function sourcesOf(statement: Token[]): Source[] {
  const words = meaning(statement);
  const sources: Source[] = [];
  let reading = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (isName(word) && isWord(words[at + 1], "AS") && words[at + 2]?.text === "(") {
      sources.push({ name: nameIn(word), table: null });
      continue;
    }
    if (isWord(word, "FROM") || isWord(word, "JOIN")) reading = true;
    else if (word.kind === "keyword" && !isWord(word, "AS")) reading = false;
    const begins = isWord(word, "FROM") || isWord(word, "JOIN") || (reading && word.text === ",");
    const table = words[at + 1];
    if (!begins || !isName(table)) continue;
    const next = isWord(words[at + 2], "AS") ? words[at + 3] : words[at + 2];
    sources.push({ name: nameIn(isName(next) ? next : table), table: nameIn(table) });
  }
  return sources;
}
