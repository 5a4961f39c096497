// Search of names by words.

/** Returns the words of a text in lower case. Words are letters and digits, so that `dpc isr` also finds `DPC/ISR`. */
const wordsOf = (text: string) =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");

/**
 * Returns how well a text fits the names of an item: 0 if it does not fit, otherwise a larger number for a better
 * match. Each word of the text must be in one of the names. The first name is the title.
 */
export function fit(text: string, names: readonly string[]): number {
  const sought = wordsOf(text);
  if (sought.length === 0) return 1;
  const all = names.map((name) => wordsOf(name).join(" "));
  if (!sought.every((word) => all.some((name) => name.includes(word)))) return 0;
  const title = all[0] ?? "";
  const joined = sought.join(" ");
  if (title === joined) return 5;
  if (title.startsWith(joined)) return 4;
  if (sought.every((word) => ` ${title}`.includes(` ${word}`))) return 3;
  if (sought.every((word) => title.includes(word))) return 2;
  return 1;
}
