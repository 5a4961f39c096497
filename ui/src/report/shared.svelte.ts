// Time range and pointer that graphs of a report share.

import type { Range } from "../api/types";
import { same, within, zoomed } from "../view/range";

/** Minimum length of the visible range, as a share of the whole. A report has no data of a higher resolution. */
const SHORTEST = 1 / 100;

/** Visible time range of all graphs with the same whole range, and the time under the pointer. */
export class Shared {
  range: Range = $state.raw([0, 1]);
  hover = $state<number | null>(null);

  constructor(readonly whole: Range) {
    this.range = whole;
  }

  get isWhole(): boolean {
    return same(this.range, this.whole);
  }

  zoomTo([from, to]: Range): void {
    const more = Math.max(((this.whole[1] - this.whole[0]) * SHORTEST - (to - from)) / 2, 0);
    this.range = within([from - more, to + more], this.whole);
  }

  zoomBy(factor: number, at: number): void {
    this.zoomTo(zoomed(this.range, factor, this.whole, at));
  }

  showAll(): void {
    this.range = this.whole;
  }
}
