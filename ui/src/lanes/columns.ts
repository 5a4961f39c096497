// Bars for time spans, in columns of pixels. Spans that are shorter than a column share a bar. The height of
// this bar is proportional to the sum of their lengths.

/** Spans, sorted and without overlaps. Positions are in columns and may have fractions. */
export interface Spans {
  length: number;
  left(place: number): number;
  right(place: number): number;
  /** Share of the span in which the CPU was busy, 0 to 1. */
  busy(place: number): number;
}

/** Bar: a range of columns, the filled share of its height, and the index of the longest span in it. */
export interface Bar {
  left: number;
  right: number;
  share: number;
  place: number;
}

/** Calls `draw` for each bar. Spans that are at least one column long have their own bar. */
export function bars(spans: Spans, draw: (bar: Bar) => void): void {
  let shared = null as Bar | null;
  let longest = 0;
  for (let place = 0; place < spans.length; place++) {
    const [from, to] = [spans.left(place), spans.right(place)];
    const wide = to - from;
    if (wide >= 1) {
      if (shared) draw(shared);
      shared = null;
      const left = Math.round(from);
      draw({ left, right: Math.max(Math.round(to), left + 1), share: spans.busy(place), place });
      continue;
    }
    const left = Math.floor(from);
    if (shared?.left !== left) {
      if (shared) draw(shared);
      shared = { left, right: left + 1, share: 0, place };
      longest = 0;
    }
    shared.share = Math.min(shared.share + wide * spans.busy(place), 1);
    if (wide > longest) {
      longest = wide;
      shared.place = place;
    }
  }
  if (shared) draw(shared);
}
