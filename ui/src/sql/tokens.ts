// Tokens of SQL text, for colours and completion. Each character belongs to a token.

/** Token with its position. */
export interface Token {
  kind: "space" | "comment" | "text" | "number" | "keyword" | "name" | "quoted" | "sign";
  from: number;
  to: number;
  text: string;
}

const PIECES: [Token["kind"], RegExp][] = [
  ["space", /\s+/y],
  ["comment", /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y],
  ["text", /'(?:[^']|'')*(?:'|$)/y],
  ["quoted", /"(?:[^"]|"")*(?:"|$)/y],
  ["number", /(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?/iy],
  ["name", /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ["sign", /[\s\S]/y],
];

/** Keywords that completion suggests. */
export const KEYWORDS = [
  ..."SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT RIGHT FULL INNER OUTER CROSS ON".split(
    " ",
  ),
  ..."USING AS AND OR NOT IN IS NULL LIKE ILIKE BETWEEN EXISTS CASE WHEN THEN ELSE END ASC DESC NULLS FIRST LAST".split(
    " ",
  ),
  ..."WITH RECURSIVE UNION ALL INTERSECT EXCEPT VALUES CAST FILTER OVER PARTITION ROWS RANGE PRECEDING FOLLOWING".split(
    " ",
  ),
  ..."UNBOUNDED CURRENT ROW QUALIFY EXPLAIN ANALYZE DESCRIBE SHOW TABLES CREATE VIEW TABLE TRUE FALSE INTERVAL".split(
    " ",
  ),
];
const isKeyword = new Set(KEYWORDS);

/** Splits SQL text into tokens. */
export function tokens(sql: string): Token[] {
  const found: Token[] = [];
  for (let from = 0; from < sql.length;) {
    for (const [kind, piece] of PIECES) {
      piece.lastIndex = from;
      const text = piece.exec(sql)?.[0];
      if (!text) continue;
      const isWord = kind === "name" && isKeyword.has(text.toUpperCase());
      found.push({ kind: isWord ? "keyword" : kind, from, to: from + text.length, text });
      from += text.length;
      break;
    }
  }
  return found;
}
