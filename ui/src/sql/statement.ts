// Tables of a statement, with their aliases.

import { tokens, type Token } from "./tokens";

/** Name that can precede the name of a column. */
export interface Source {
  /** Alias, or the name of the table. */
  name: string;
  /** Name of the table; `null` if the source is a query inside the statement. */
  table: string | null;
}

/** Removes white space and comments. */
export function significant(tokens: Token[]): Token[] {
  return tokens.filter(({ kind }) => kind !== "space" && kind !== "comment");
}

/** Returns the name that a token contains, without quotes. Unquoted names are converted to lower case. */
export function nameIn({ kind, text }: Token): string {
  return kind === "quoted" ? text.slice(1, -1).replaceAll('""', '"') : text.toLowerCase();
}

/** Returns the tokens of the statement that contains a position. */
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

/** Returns the tables after `FROM` and `JOIN`, and the queries of `WITH`. */
export function sourcesOf(statement: Token[]): Source[] {
  const words = significant(statement);
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
