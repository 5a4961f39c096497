// Canvas with the size of its CSS box, in device pixels. It is painted again after changes.

import { onTheme } from "./theme";

/** Function that paints a graph. The size is in CSS pixels. */
export type Paint = (ctx: CanvasRenderingContext2D, width: number, height: number) => void;

/** Canvas that is painted again when necessary. */
export interface Surface {
  /** Paints the canvas in the next animation frame. */
  paint(): void;
  /** Stops painting the canvas. */
  close(): void;
}

/** Paints a canvas now and after each change of its size or of the theme. */
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
  // If the user zooms the page or moves the window to another screen, device pixels change but the box does
  // not.
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

/** Returns the text. If it is wider than `width`, it is shortened and ends with an ellipsis. */
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

/** Returns the CSS font of the page with a size in pixels. */
export function font(element: HTMLElement, pixels: number): string {
  return `${pixels}px ${getComputedStyle(element).fontFamily}`;
}
