// Colours of the theme for canvases, which do not support `var(--x)` and `light-dark()`.

/** Red, green and blue parts of a colour, 0 to 255 each. */
export type Rgb = [number, number, number];

const known = new Map<string, string>();
const listeners = new Set<() => void>();
let probe: HTMLElement | undefined;

/** Returns a CSS colour as it is in the current theme, for example as `rgb(…)`. */
export function colour(css: string): string {
  let resolved = known.get(css);
  if (resolved === undefined) {
    probe ??= watched();
    probe.style.color = "";
    probe.style.color = css;
    resolved = getComputedStyle(probe).color;
    known.set(css, resolved);
  }
  return resolved;
}

/** Returns the parts of a CSS colour in the current theme. */
export function rgb(css: string): Rgb {
  return partsOf(colour(css));
}

/** Calls `changed` after each change of the theme. Returns a function that stops these calls. */
export function onTheme(changed: () => void): () => void {
  probe ??= watched();
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** Parses a computed colour of the form `rgb(1, 2, 3)`, `rgba(…)` or `color(srgb 0.1 0.2 0.3)`. */
export function partsOf(computed: string): Rgb {
  const scale = computed.startsWith("color(") ? 255 : 1;
  const parts = computed.replace(/^[a-z]+\((srgb )?/, "").match(/[\d.]+(e-\d+)?/g) ?? [];
  return [0, 1, 2].map((part) => Math.round(Number(parts[part] ?? 0) * scale)) as Rgb;
}

/** Mixes two colours. The result is the first colour if `share` is 0, and the second if it is 1. */
export function mixed(one: Rgb, other: Rgb, share: number): Rgb {
  return one.map((part, place) => Math.round(part + (other[place] - part) * share)) as Rgb;
}

/** Formats a colour as CSS. */
export function css([red, green, blue]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${alpha})`;
}

/** Returns the text colour, black or white, that has more contrast with the background. */
export function inkOn(background: Rgb): string {
  return luminance(background) > 0.3 ? "#111" : "#fff";
}

/** Returns the relative luminance of a colour, 0 to 1 (WCAG 2.2). */
function luminance(parts: Rgb): number {
  const [red, green, blue] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function watched(): HTMLElement {
  const changed = () => {
    known.clear();
    for (const listener of listeners) listener();
  };
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", changed);
  }
  new MutationObserver(changed).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme", "class"],
  });
  const probe = document.createElement("i");
  probe.hidden = true;
  // In the high-contrast mode, browsers give all text the same computed colour, except elements of this class.
  probe.className = "keeps-colour";
  return document.body.appendChild(probe);
}
