import { expect, test } from "vitest";
import { original, parse, stringify, visible } from "./visible";

const HOSTILE = [
  "\u202egnp.exe",
  "a\x1b[2J\r\b\f\x9b",
  "\u2028\u061c\ufeff\u200b\u00ad\u{e0001}",
  "\\u{202e}",
  "\u00a0\u3000",
  "\ufe0f\u{e0100}\u{e0049}\u180b\u034f\u115f\u3164\uffa0\u2800",
];

test("harmful characters are visible, and the text can be restored", () => {
  for (const text of HOSTILE) {
    expect(visible(text)).toMatch(/^[ -~]+$/);
    expect(visible(text)).not.toBe(text);
    expect(original(visible(text))).toBe(text);
  }
  expect(visible("\u202egnp.exe")).toBe("\\u{202e}gnp.exe");
  for (const text of ["Zoë 日本 𝒳.exe", "SELECT 1\n\tFROM x", "C:\\boot\\users"]) expect(visible(text)).toBe(text);
});

test("answers are visible, requests are original", () => {
  for (const text of HOSTILE) {
    const answer = { names: [text, "x"], count: 1, none: null };
    const read = parse(JSON.stringify(answer)) as typeof answer;
    expect(read).toEqual({ ...answer, names: [visible(text), "x"] });
    expect(JSON.parse(stringify({ is: [read.names[0]] }))).toEqual({ is: [text] });
  }
  expect(parse('{\n "a": "b c", "path": "C:\\\\boot\\\\users"\n}')).toEqual({ a: "b c", path: "C:\\boot\\users" });
});

test("names in sentences are escaped once", () => {
  const answer = { sentence: "“a\\u{202e}b” waits.", why: ["“\\u{201d}”\u202e"], name: "\\u{202e}" };
  expect(parse(JSON.stringify(answer))).toEqual({
    sentence: "“a\\u{202e}b” waits.",
    why: ["“\\u{201d}”\\u{202e}"],
    name: "\\u{5c}u{202e}",
  });
});
