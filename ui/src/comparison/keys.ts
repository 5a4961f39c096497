/** Steps of the arrow keys in a picture whose places are side by side. */
export const SIDE_BY_SIDE = { ArrowLeft: -1, ArrowRight: 1 };

/** Steps of the arrow keys in a picture whose places are one below the other. */
export const ONE_BELOW_THE_OTHER = { ArrowUp: -1, ArrowDown: 1 };

/**
 * Returns the index of the place that a picture marks after a key; -1 for no place. `held` is the index before the key.
 * If the key has no function in the picture, returns `held` and leaves the event to the page.
 *
 * @param steps Number of places by which a key moves.
 * @param first Place of the first step, if no place is marked.
 */
export function heldAfter(
  event: KeyboardEvent,
  held: number,
  places: number,
  steps: Record<string, number>,
  first = 0,
): number {
  if (event.ctrlKey || event.metaKey || event.altKey) return held;
  const step = steps[event.key];
  let next: number;
  if (step !== undefined) next = held < 0 ? first : Math.min(Math.max(held + step, 0), places - 1);
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = places - 1;
  else if (event.key === "Escape" && held >= 0) next = -1;
  else return held;
  event.preventDefault();
  event.stopPropagation();
  return next;
}
