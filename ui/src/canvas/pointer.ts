// Pointer input on a graph: hovering, clicks, drags and the wheel.

export interface Point {
  x: number;
  y: number;
}

/** Functions that are called for input. Positions are pixels in the graph. */
export interface PointerActions {
  hover?(at: Point): void;
  leave?(): void;
  click?(at: Point, event: PointerEvent): void;
  /** Called while the user drags, with the position at the start of the drag and the current position. */
  drag?(from: Point, to: Point): void;
  dragged?(from: Point, to: Point): void;
  /** Called when a drag is cancelled. */
  dropped?(): void;
  /**
   * Called when the user turns the wheel with Ctrl or pinches. `factor` scales the length of the time range.
   */
  zoom?(at: Point, factor: number): void;
}

/** Minimum distance of a drag, in pixels. A shorter movement is a click. */
const CLICK = 4;

/** Listens to pointer events. Returns a function that stops listening. */
export function onPointer(element: HTMLElement, actions: PointerActions): () => void {
  let down: { at: Point; drags: boolean } | null = null;
  // The Escape key cancels a drag, no matter which element has the focus.
  const escape = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    lift();
    actions.dropped?.();
  };
  const lift = () => {
    down = null;
    removeEventListener("keydown", escape, { capture: true });
  };
  const at = (event: MouseEvent): Point => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const listeners: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void } = {
    pointerdown(event) {
      if (event.button !== 0) return;
      down = { at: at(event), drags: false };
      element.setPointerCapture(event.pointerId);
      addEventListener("keydown", escape, { capture: true });
    },
    pointermove(event) {
      const to = at(event);
      if (!down) return actions.hover?.(to);
      down.drags ||= Math.hypot(to.x - down.at.x, to.y - down.at.y) >= CLICK;
      if (down.drags) actions.drag?.(down.at, to);
    },
    pointerup(event) {
      if (!down) return;
      const { at: from, drags } = down;
      lift();
      if (drags) actions.dragged?.(from, at(event));
      else actions.click?.(at(event), event);
    },
    pointercancel() {
      lift();
      actions.dropped?.();
    },
    pointerleave() {
      if (!down) actions.leave?.();
    },
  };
  for (const [type, listener] of Object.entries(listeners)) {
    element.addEventListener(type, listener as EventListener);
  }
  const wheel = (event: WheelEvent) => {
    if (!actions.zoom || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 30;
    actions.zoom(at(event), 1.0025 ** Math.min(Math.max(pixels, -300), 300));
  };
  element.addEventListener("wheel", wheel, { passive: false });
  return () => {
    for (const [type, listener] of Object.entries(listeners)) {
      element.removeEventListener(type, listener as EventListener);
    }
    element.removeEventListener("wheel", wheel);
    lift();
  };
}
