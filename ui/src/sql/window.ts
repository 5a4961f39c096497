// Of a long table only the rows that are seen are made.

/** Rows from … up to. */
export interface Window {
  from: number;
  to: number;
}

/** The rows seen at a place of the scroll bar, and some beyond. */
export function windowOf(rows: number, rowHeight: number, scrolled: number, height: number, beyond = 12): Window {
  const first = Math.floor(scrolled / rowHeight);
  const last = Math.ceil((scrolled + height) / rowHeight);
  return { from: Math.min(Math.max(first - beyond, 0), rows), to: Math.min(Math.max(last + beyond, 0), rows) };
}
