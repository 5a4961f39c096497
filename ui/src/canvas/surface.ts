// A canvas as large as its box, in device pixels, painted again when something changed.

import { onTheme } from "./theme";

/** Paints a picture of that size in CSS pixels. */
export type Paint = (ctx: CanvasRenderingContext2D, width: number, height: number) => void;

/** A canvas that paints itself. */
export interface Surface {
  /** Paints with the next frame. */
  paint(): void;
  /** Ends it. */
  close(): void;
}

/** Keeps a canvas painted: its box is what CSS makes it. */
export function surface(canvas: HTMLCanvasElement, paint: Paint): Surface {
  let frame = 0;
  const now = () => {
    frame = 0;
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = devicePixelRatio || 1;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (across === 0 || down === 0) return;
    if (canvas.width !== across || canvas.height !== down) {
      canvas.width = across;
      canvas.height = down;
    }
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.setTransform(across / width, 0, 0, down / height, 0, 0);
    ctx.clearRect(0, 0, width, height);
    paint(ctx, width, height);
  };
  const soon = () => {
    frame ||= requestAnimationFrame(now);
  };
  const observer = new ResizeObserver(soon);
  observer.observe(canvas);
  const forget = onTheme(soon);
  // A window moved to another screen, or zoomed, keeps its box but not its pixels.
  addEventListener("resize", soon);
  soon();
  return {
    paint: soon,
    close() {
      cancelAnimationFrame(frame);
      observer.disconnect();
      forget();
      removeEventListener("resize", soon);
    },
  };
}

/** The text, or as much of its beginning as fits, with an ellipsis. */
export function fitting(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let [fits, tooLong] = [0, text.length];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (ctx.measureText(`${text.slice(0, middle)}…`).width <= width) fits = middle;
    else tooLong = middle;
  }
  return fits > 0 ? `${text.slice(0, fits)}…` : "";
}

/** The font of the page, that many pixels high. */
export function font(element: HTMLElement, pixels: number): string {
  return `${pixels}px ${getComputedStyle(element).fontFamily}`;
}
