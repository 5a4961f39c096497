// A canvas of a component, painted again when its picture, its box or the theme changed.

import type { Layer } from "./layer";
import { surface, type Paint, type Surface } from "./surface";
import { onTheme } from "./theme";

/**
 * Keeps a canvas painted as long as its component is there. `picture` gives what `paint` paints, so
 * that it is called again when that changes; a layer that `paint` uses is forgotten with its colours.
 */
export function painted(
  canvas: () => HTMLCanvasElement | null,
  picture: () => unknown,
  paint: Paint,
  layer?: Layer,
): void {
  let mine: Surface | undefined;
  $effect(() => {
    const element = canvas();
    if (!element) return;
    const made = surface(element, paint);
    mine = made;
    const forget = layer && onTheme(() => layer.forget());
    return () => {
      made.close();
      forget?.();
    };
  });
  $effect(() => {
    void picture();
    mine?.paint();
  });
}
