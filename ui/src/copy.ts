// Formatting of tables as text for the clipboard.

import { visible } from "./visible";

/**
 * Formats comma-separated values (RFC 4180) with a header line. Texts that a spreadsheet would run as a
 * formula begin with `'`, as in the files that laglab writes.
 */
export function csv(header: string[], rows: string[][]): string {
  const harmless = (text: string) =>
    /^[=@]/.test(text) || (/^[+-]/.test(text) && Number.isNaN(Number(text))) ? `'${text}` : text;
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (text: string) => quoted(visible(harmless(text)));
  return [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Formats a table in GitHub Markdown. Columns in `numeric` are right-aligned. */
export function markdown(header: string[], rows: string[][], numeric: boolean[] = []): string {
  const cell = (text: string) => text.replace(/[\\`*_[\]<>|&~]/g, "\\$&").replace(/\r\n|\r|\n/g, "<br>");
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  const rule = header.map((_, place) => (numeric[place] ? "---:" : "---"));
  return [line(header.map(cell)), line(rule), ...rows.map((row) => line(row.map(cell)))].join("");
}
