// Dragging of column headers and of the golden bar to other positions.

/** Column that the user drags, and the position of the pointer in the table. */
interface Dragged {
  x: number;
  y: number;
  label: string;
}

/** Minimum distance of a drag, in pixels. A shorter movement is a click. */
const CLICK = 5;

/**
 * Functions of a table whose columns can be dragged. They return its geometry, or are called at the end of a
 * drag.
 */
export interface DragTable {
  /** Element that contains the table. */
  holder: () => HTMLElement;
  /** Header elements and the indices of their columns, from left to right. */
  heads: () => { head: HTMLElement; x: number }[];
  /** Number of columns. */
  columns: () => number;
  /**
   * Called at the end of a drag, to move the column with index `from` before the column with index `before`.
   */
  onmove: (from: number, before: number) => void;
  /** Called instead of `onmove` if the pointer has not moved. */
  onclick: (from: number, event: PointerEvent) => void;
}

/** State of a drag of one column. */
export class ColumnDrag {
  dragged = $state.raw<Dragged | null>(null);
  /**
   * Horizontal position of the line that marks the target, in pixels; `null` if no column is being dragged.
   */
  line = $state<number | null>(null);
  #begun: { x: number; y: number; from: number; label: string } | null = null;

  constructor(private readonly table: DragTable) {}

  /** Starts a drag when the user presses the pointer on a header or on the golden bar. */
  start(event: PointerEvent, from: number, label: string): void {
    this.#begun = { x: event.clientX, y: event.clientY, from, label };
    addEventListener("pointermove", this.#move);
    addEventListener("pointerup", this.#end, { once: true });
    addEventListener("pointercancel", this.#stop, { once: true });
  }

  #move = (event: PointerEvent): void => {
    const begun = this.#begun;
    if (!begun) return;
    const distance = Math.hypot(event.clientX - begun.x, event.clientY - begun.y);
    if (!this.dragged && distance < CLICK) return;
    const box = this.table.holder().getBoundingClientRect();
    this.dragged = { x: event.clientX - box.left, y: event.clientY - box.top, label: begun.label };
    this.line = this.#target(event).line;
  };

  #end = (event: PointerEvent): void => {
    const [wasDragged, from] = [this.dragged !== null, this.#begun?.from];
    this.#stop();
    if (from === undefined) return;
    if (wasDragged) this.table.onmove(from, this.#target(event).before);
    else this.table.onclick(from, event);
  };

  #stop = (): void => {
    this.#begun = this.dragged = this.line = null;
    removeEventListener("pointermove", this.#move);
  };

  /**
   * Returns the column before which the dragged column would be inserted, and the position of the line
   * there.
   */
  #target(event: PointerEvent): { before: number; line: number } {
    const box = this.table.holder().getBoundingClientRect();
    let [before, line] = [this.table.columns(), 0];
    for (const { head, x } of this.table.heads()) {
      const rect = head.getBoundingClientRect();
      if (event.clientX < rect.left + rect.width / 2) return { before: x, line: rect.left - box.left };
      [before, line] = [x + 1, rect.right - box.left];
    }
    return { before, line };
  }
}
