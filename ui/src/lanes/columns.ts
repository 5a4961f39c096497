// Spans of time as columns of pixels. What is shorter than a column does not fill it: such spans share
// it, and it is as high as they are long together.

/** Spans, sorted by time and apart from each other, in columns: their place is a fraction. */
export interface Spans {
  length: number;
  left(place: number): number;
  right(place: number): number;
  /** How much of a span counts, 0 to 1. */
  busy(place: number): number;
}

/** Columns from … up to, how much of them is filled, and the span that fills most. */
export interface Bar {
  left: number;
  right: number;
  share: number;
  place: number;
}

/** The bars of spans; a span that is a column wide or more has its own. */
export function bars(spans: Spans, draw: (bar: Bar) => void): void {
  let shared: Bar | null = null;
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
