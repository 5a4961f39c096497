// Colours for names. A name has the same colour everywhere on the page.

/** Number of colours for series: `--series-0` and following in app.css. */
export const COLOURS = 28;

/** Removes the id from a label. For example, `chrome.exe (144)` becomes `chrome.exe`. */
export function nameOf(label: string): string {
  return label.replace(/ \(\d+\)$/, "");
}

/** Returns the FNV-1a hash of the lower-case name, because Windows ignores the case of names. */
function hash(name: string): number {
  let state = 0x811c9dc5;
  for (const unit of name.toLowerCase()) {
    state ^= unit.codePointAt(0)!;
    state = Math.imul(state, 0x01000193);
  }
  state ^= state >>> 15;
  return state >>> 0;
}

/** Colours of names that have the same meaning in every trace. */
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

/**
 * Returns the colour of a label, for example of a process or module. Labels with the same name have the same
 * colour.
 */
export function paletteColor(label: string): string {
  const name = nameOf(label);
  return FIXED.get(name.toLowerCase()) ?? `var(--series-${hash(name) % COLOURS})`;
}

/**
 * Returns the index of a priority's band. Bands are ranges of priorities with the same colour; the lowest
 * has index 0.
 */
function band(priority: number): number {
  const from = [1, 5, 8, 9, 13, 16, 24];
  return Math.max(
    from.findLastIndex((least) => priority >= least),
    0,
  );
}

/**
 * Shades of a series colour: its percentage, and the colour that is mixed in. Names with the same colour get
 * different shades.
 */
const SHADES: [share: number, rest: "black" | "white"][] = [
  [100, "white"],
  [55, "black"],
  [60, "white"],
  [75, "black"],
  [40, "white"],
  [38, "black"],
];

/** Returns a shade of a colour. `place` is the index of the shade. */
function shaded(color: string, place: number): string {
  const [share, other] = SHADES[place % SHADES.length];
  return share === 100 ? color : `color-mix(in srgb, ${color} ${share}%, ${other})`;
}

/**
 * Returns the colour of a name, in the shade of the label. The shade depends only on the label, so that a label has
 * the same colour in every graph and after every start. Windows gives processes ids that are multiples of four, so
 * processes of a program with neighbouring ids have different shades.
 */
function shadedColor(label: string): string {
  const color = paletteColor(label);
  if (!color.startsWith("var(--series")) return color;
  const id = Number(/ \((\d+)\)$/.exec(label)?.[1] ?? 0);
  return shaded(color, Math.floor(hash(nameOf(label)) / COLOURS) + Math.floor(id / 4));
}

/** Returns the colour of a key's value. Priorities and ranks have colours of a scale. */
export function valueColor(column: string, label: string): string {
  const number = Number.parseInt(label, 10);
  if (/priority(_out)?$/.test(column) && Number.isFinite(number))
    return number === 0 ? "var(--idle)" : `var(--band-${band(number)})`;
  if (/rank(_out)?$/.test(column) && Number.isFinite(number)) {
    return number === 0 ? "var(--band-3)" : `var(--rank-${Math.min(number, 4)})`;
  }
  // Consecutive numbers, for example of CPUs, get colours that contrast.
  if (/^((ideal_|readying_|previous_)?cpu|ideal_processor|disk)$/.test(column) && Number.isFinite(number)) {
    return shaded(`var(--series-${(number * 11 + 3) % COLOURS})`, Math.floor(number / COLOURS));
  }
  return shadedColor(label);
}
