// Characters that are invisible or act on the text around them, such as changes of the writing direction. The
// page shows such a character as `\u{202e}`, as the terminal does.

/**
 * All control, format, private-use, unassigned and separator characters except blank, tab and line feed. Also
 * characters that programs do not draw, such as variation selectors and fillers.
 */
const HARMFUL =
  /(?![\t\n])\p{Cc}|[\p{Cf}\p{Co}\p{Cn}\p{DI}\p{Zl}\p{Zp}\u2800\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/u;
const EACH_HARMFUL = new RegExp(HARMFUL, "gu");

/** Escapes of JSON that can represent harmful characters, and `\u{` as text. */
const ESCAPES = /(?<!\\)(?:\\\\)*\\[bfru]|\\\\u\{/;

const escaped = (text: string) => `\\u{${text.codePointAt(0)!.toString(16)}}`;

/** Escapes the harmful characters of a text. */
export function visible(text: string): string {
  // Without the first step, a name with the letters `\u{7f}` would look like the escaped character.
  return text.replace(/\\(?=u\{)/g, escaped).replace(EACH_HARMFUL, escaped);
}

/** Returns the text that `visible` escaped. */
export function original(text: string): string {
  return text.replace(/\\u\{([0-9a-f]{1,6})\}/g, (all, code: string) => {
    const point = parseInt(code, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });
}

/** Fields whose texts are sentences of the server. Names in them are escaped already. */
const SENTENCES = new Set(["answer", "because", "doubts", "how", "process", "remedies", "sentence", "title", "why"]);

/** Escapes the harmful characters of all texts in a value. */
function allVisible(value: unknown, isSentence: boolean): unknown {
  if (typeof value === "string") return isSentence ? value.replace(EACH_HARMFUL, escaped) : visible(value);
  if (Array.isArray(value)) return value.map((item) => allVisible(item, isSentence));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, allVisible(field, SENTENCES.has(name))]);
  return Object.fromEntries(fields);
}

/** Parses an answer of the server, with visible texts. */
export function parse(json: string): unknown {
  // Almost no answer has harmful characters, and large answers are parsed faster without the second step.
  const isPlain = !ESCAPES.test(json) && !HARMFUL.test(json);
  const value: unknown = JSON.parse(json);
  return isPlain ? value : allVisible(value, false);
}

/** Formats a request to the server, with original texts. */
export function stringify(body: unknown): string {
  return JSON.stringify(body, (_, value: unknown) => (typeof value === "string" ? original(value) : value));
}
