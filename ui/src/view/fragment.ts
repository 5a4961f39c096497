// A screen as the fragment of an address, and back: JSON in UTF-8 in base64url, so that any program
// that handles links keeps it whole.

import { readScreen, type Screen } from "./screen";

const PREFIX = "v1=";

/** The fragment without its `#`. */
export function fragmentOf(screen: Screen): string {
  const bytes = new TextEncoder().encode(JSON.stringify(screen));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return PREFIX + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The screen of a fragment, with or without its `#`; none if it is no such fragment. */
export function screenOf(fragment: string, open: readonly number[]): Screen | null {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(PREFIX) || text.length > 500_000) return null;
  try {
    const binary = atob(text.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (one) => one.charCodeAt(0));
    return readScreen(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)), open);
  } catch {
    return null;
  }
}
