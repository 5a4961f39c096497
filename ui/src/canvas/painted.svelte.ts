// Canvas of a component. It is painted again when its content, its size or the theme changes.

import type { Layer } from "./layer";
import { surface, type Paint, type Surface } from "./surface";
import { onTheme } from "./theme";

/**
 * Paints a canvas while its component exists. `picture` returns the content that `paint` draws. If the
 * content changes, `paint` runs again. A change of theme removes the image that is cached in `layer`.
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
