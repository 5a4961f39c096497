// Layout of the graph of waits. On the left are the programs that waited. On the right are the programs that ended the
// waits.

import type { WaitEdge } from "../api/types";

/** Program at one end of ribbons. */
export interface Place {
  name: string;
  top: number;
  tall: number;
}

/** Changed waits of one program for another. */
export interface Ribbon {
  edge: WaitEdge;
  /** Top of the ribbon at its left and at its right end. */
  from: number;
  to: number;
  width: number;
  /** True if the waits take more time after the change. */
  more: boolean;
}

/** Name that takes the place of a program if a DPC of a device or a timer ended the waits. */
export const DPCS = "DPCs";

/** Height of the widest ribbon, distance between programs, and minimum height of a program, so that its name fits. */
const [WIDEST, GAP, LEAST] = [46, 6, 15];

export function change({ before_ns, after_ns }: WaitEdge): number {
  return after_ns - before_ns;
}

/** Places the first `most` edges. `edges` must be sorted by the size of their change, the largest first. */
export function layout(
  edges: WaitEdge[],
  most: number,
): { left: Place[]; right: Place[]; ribbons: Ribbon[]; height: number } {
  const shown = edges.slice(0, most);
  const greatest = Math.max(...shown.map((edge) => Math.abs(change(edge))), Number.MIN_VALUE);
  const widths = shown.map((edge) => Math.max((Math.abs(change(edge)) / greatest) * WIDEST, 1));
  const column = (nameOf: (edge: WaitEdge) => string) => {
    const names = [...new Set(shown.map(nameOf))];
    let top = 0;
    const places = names.map((name) => {
      const own = widths.filter((_, place) => nameOf(shown[place]) === name);
      const tall = Math.max(
        own.reduce((sum, width) => sum + width, 0),
        LEAST,
      );
      const place = { name, top, tall };
      top += tall + GAP;
      return place;
    });
    // Each ribbon begins where the previous ribbon ends.
    const next = new Map(places.map(({ name, top }) => [name, top]));
    const tops = shown.map((edge, place) => {
      const at = next.get(nameOf(edge)) ?? 0;
      next.set(nameOf(edge), at + widths[place]);
      return at;
    });
    return { places, tops, height: Math.max(top - GAP, 0) };
  };
  const left = column(({ waiting }) => waiting);
  const right = column(({ waker }) => waker ?? DPCS);
  return {
    left: left.places,
    right: right.places,
    ribbons: shown.map((edge, place) => ({
      edge,
      from: left.tops[place],
      to: right.tops[place],
      width: widths[place],
      more: change(edge) > 0,
    })),
    height: Math.max(left.height, right.height),
  };
}
