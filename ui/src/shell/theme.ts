// Theme of the page: light, dark, or the theme of the operating system.

export type Theme = "system" | "light" | "dark";
const KEY = "laglab-theme";

/** Returns the stored theme. If no theme is stored or the browser has no storage, returns `system`. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

/** Applies and stores a theme. */
export function useTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Without storage, the theme is used until the page is closed.
  }
}
