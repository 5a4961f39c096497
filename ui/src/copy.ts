// Tables as text for other programs.

/** Comma-separated values (RFC 4180): a line for the header and one for each row. */
export function csv(header: string[], rows: string[][]): string {
  const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** A table of Markdown (GitHub's); `numeric` columns are aligned right. */
export function markdown(header: string[], rows: string[][], numeric: boolean[] = []): string {
  const cell = (text: string) =>
    text.replace(/[\\`*_[\]<>|&~]/g, "\\$&").replace(/\r\n|\r|\n/g, "<br>");
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  const rule = header.map((_, place) => (numeric[place] ? "---:" : "---"));
  return [line(header.map(cell)), line(rule), ...rows.map((row) => line(row.map(cell)))].join("");
}
