// Visible rows of a long table. Only these rows are rendered.

/** Range of rows, from `from` to the row before `to`. */
export interface Window {
  from: number;
  to: number;
}

/** Returns the rows that are visible at a scroll position, and `beyond` more rows above and below them. */
export function windowOf(rows: number, rowHeight: number, scrolled: number, height: number, beyond = 12): Window {
  const first = Math.floor(scrolled / rowHeight);
  const last = Math.ceil((scrolled + height) / rowHeight);
  return { from: Math.min(Math.max(first - beyond, 0), rows), to: Math.min(Math.max(last + beyond, 0), rows) };
}
