// Encoding of a screen in the fragment of an address. It is JSON in UTF-8, encoded as base64url, because
// programs that process links do not change these characters.

import { readScreen, type Screen } from "./screen";

const PREFIX = "v1=";

/** Returns the fragment for a screen, without `#`. */
export function fragmentOf(screen: Screen): string {
  const bytes = new TextEncoder().encode(JSON.stringify(screen));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return PREFIX + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * Decodes a fragment, which may start with `#`. Returns `null` if it is invalid. `open` has the ids of the
 * open traces, and `compared` is true if two traces are compared.
 */
export function screenOf(fragment: string, open: readonly number[], compared = false): Screen | null {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(PREFIX) || text.length > 500_000) return null;
  try {
    const binary = atob(text.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (one) => one.charCodeAt(0));
    return readScreen(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)), open, compared);
  } catch {
    return null;
  }
}
