// One colour for one name, everywhere in the page.

/** How many colours there are: `--series-0` … of app.css. */
export const COLOURS = 28;

/** A name without the id behind it: `chrome.exe (144)` and `chrome.exe (200)` are `chrome.exe`. */
export function nameOf(label: string): string {
  return label.replace(/ \(\d+\)$/, "");
}

/** FNV-1a over the name's UTF-16 units, in lower case: Windows' names are the same in any case. */
function hash(name: string): number {
  let state = 0x811c9dc5;
  for (const unit of name.toLowerCase()) {
    state ^= unit.codePointAt(0)!;
    state = Math.imul(state, 0x01000193);
  }
  state ^= state >>> 15;
  return state >>> 0;
}

/** Names that mean the same in every trace. */
const FIXED = new Map([
  ["idle", "var(--idle)"],
  ["unknown", "var(--unknown)"],
  ["not known", "var(--unknown)"],
  ["dpc", "var(--dpc)"],
  ["timer_dpc", "var(--dpc-timer)"],
  ["threaded_dpc", "var(--dpc-threaded)"],
  ["isr", "var(--isr)"],
  ["msi", "var(--isr-msi)"],
]);

/** The colour of a process, module or the like: the same for the same name. */
export function paletteColor(label: string): string {
  const name = nameOf(label);
  return FIXED.get(name.toLowerCase()) ?? `var(--series-${hash(name) % COLOURS})`;
}

/** Which band of priorities one is in, from the weakest on. */
function band(priority: number): number {
  const from = [1, 5, 8, 9, 13, 16, 24];
  return Math.max(from.findLastIndex((least) => priority >= least), 0);
}

/** Shades of a colour, for names that share it. */
const SHADES: [share: number, rest: "black" | "white"][] = [
  [100, "white"],
  [55, "black"],
  [60, "white"],
  [75, "black"],
  [40, "white"],
  [38, "black"],
];

/** Labels that have a shade of a colour, by the colour: each keeps its own while the page is open. */
const shades = new Map<string, Map<string, number>>();

/** The colour in one of its shades. */
function shaded(color: string, place: number): string {
  const [share, other] = SHADES[place % SHADES.length]!;
  return share === 100 ? color : `color-mix(in srgb, ${color} ${share}%, ${other})`;
}

/**
 * The colour of a name in a shade that is the label's own: two processes of one program, and two names
 * that happen to have the same colour, can be told apart, in whatever order they are met again.
 */
function ownColor(label: string): string {
  const color = paletteColor(label);
  if (!color.startsWith("var(--series")) return color;
  const labels = shades.get(color) ?? new Map<string, number>();
  shades.set(color, labels);
  const known = label.toLowerCase();
  const place = labels.get(known) ?? labels.size;
  labels.set(known, place);
  return shaded(color, place);
}

/** The colour of one value of a key. Numbers are steps on a scale, names have their own colour. */
export function valueColor(column: string, label: string): string {
  const number = Number.parseInt(label, 10);
  if (/priority(_out)?$/.test(column) && Number.isFinite(number)) return number === 0 ? "var(--idle)" : `var(--band-${band(number)})`;
  if (/rank(_out)?$/.test(column) && Number.isFinite(number)) {
    return number === 0 ? "var(--band-3)" : `var(--rank-${Math.min(number, 4)})`;
  }
  // Neighbours of numbers, processors for instance, are far apart.
  if (/^((ideal_|readying_|previous_)?cpu|ideal_processor|disk)$/.test(column) && Number.isFinite(number)) {
    return shaded(`var(--series-${(number * 11 + 3) % COLOURS})`, Math.floor(number / COLOURS));
  }
  return ownColor(label);
}
