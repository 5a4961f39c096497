// Steps in the history of the browser. The address of each step contains the screen.

import { fragmentOf } from "./fragment";
import type { Screen } from "./screen";

/** Maximum time between two changes of the same kind that belong to the same step, in milliseconds. */
const ONE_STEP_MS = 900;

/**
 * Delay of changes of the address, in milliseconds. Browsers throttle pages that change it many times per
 * second.
 */
const ADDRESS_DELAY_MS = 200;

/** History of one page in the browser. */
export class History {
  /** Number of the current step. */
  at = $state(0);
  /** Number of the last step. */
  last = $state(0);
  #latest: { kind: string; when: number } | null = null;
  #pending: ReturnType<typeof setTimeout> | undefined;

  /** Creates a history. `screen` returns the current screen. */
  constructor(private readonly screen: () => Screen) {}

  /** Starts to listen to the browser. `onmove` is called when the user has moved back or forward. */
  start(onmove: () => void): void {
    history.replaceState({ at: 0 }, "");
    addEventListener("popstate", (event) => {
      clearTimeout(this.#pending);
      this.#pending = undefined;
      const state = event.state as { at?: number } | null;
      this.at = state?.at ?? this.last + 1;
      this.last = Math.max(this.last, this.at);
      this.#latest = null;
      onmove();
    });
  }

  /**
   * Makes a change of the screen with `apply`, and records it. Fast changes of the same kind belong to one
   * step.
   */
  record(kind: string, apply: () => void): void {
    const now = performance.now();
    const isSameStep = kind !== "" && this.#latest?.kind === kind && now - this.#latest.when < ONE_STEP_MS;
    this.#latest = { kind, when: now };
    if (!isSameStep) this.settle();
    apply();
    if (isSameStep) {
      this.#pending ??= setTimeout(() => this.settle(), ADDRESS_DELAY_MS);
    } else {
      this.at += 1;
      this.last = this.at;
      history.pushState({ at: this.at }, "", this.#address());
    }
  }

  /** Updates the address immediately, if an update is pending. */
  settle(): void {
    if (this.#pending === undefined) return;
    clearTimeout(this.#pending);
    this.#pending = undefined;
    history.replaceState({ at: this.at }, "", this.#address());
  }

  #address(): string {
    return `#${fragmentOf(this.screen())}`;
  }
}
