// Colours of the theme, as a canvas needs them: `var(--x)` and `light-dark()` mean nothing to it.

/** Red, green, blue, each 0 to 255. */
export type Rgb = [number, number, number];

const known = new Map<string, string>();
const listeners = new Set<() => void>();
let probe: HTMLElement | undefined;

/** What any CSS colour is in the theme of the moment: `rgb(…)`. */
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

/** The parts of a colour. */
export function rgb(css: string): Rgb {
  return partsOf(colour(css));
}

/** Calls back whenever the theme has changed; gives what ends that. */
export function onTheme(changed: () => void): () => void {
  probe ??= watched();
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** The parts of a computed colour: `rgb(1, 2, 3)`, `rgba(…)` or `color(srgb 0.1 0.2 0.3)`. */
export function partsOf(computed: string): Rgb {
  const scale = computed.startsWith("color(") ? 255 : 1;
  const parts = computed.replace(/^[a-z]+\((srgb )?/, "").match(/[\d.]+(e-\d+)?/g) ?? [];
  return [0, 1, 2].map((part) => Math.round(Number(parts[part] ?? 0) * scale)) as Rgb;
}

/** Between two colours: the first at 0, the second at 1. */
export function mixed(one: Rgb, other: Rgb, share: number): Rgb {
  return one.map((part, place) => Math.round(part + (other[place] - part) * share)) as Rgb;
}

/** As CSS has it. */
export function css([red, green, blue]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${alpha})`;
}

/** Black or white, whichever is read better on it. */
export function inkOn(background: Rgb): string {
  return luminance(background) > 0.3 ? "#111" : "#fff";
}

/** Relative luminance, 0 to 1 (WCAG 2.2). */
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme", "class"],
  });
  const probe = document.createElement("i");
  probe.hidden = true;
  return document.body.appendChild(probe);
}
