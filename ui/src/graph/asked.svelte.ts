// What one part of the page asked for last.

import { Latest, sentence } from "../api/client";

/** Questions that follow each other faster than this wait for the last of them: while one pans. */
const PAUSE_MS = 120;

/** An answer that is replaced when another question is asked; the older stays until then. */
export class Asked<T> {
  answer = $state.raw<T | null>(null);
  failure = $state<string | null>(null);
  #latest = new Latest();
  #when = -Infinity;
  #later: ReturnType<typeof setTimeout> | undefined;

  ask(question: (signal: AbortSignal) => Promise<T>, then?: (answer: T) => void): void {
    clearTimeout(this.#later);
    const wait = this.#when + PAUSE_MS - performance.now();
    if (wait > 0) this.#later = setTimeout(() => this.#now(question, then), wait);
    else this.#now(question, then);
  }

  #now(question: (signal: AbortSignal) => Promise<T>, then?: (answer: T) => void): void {
    this.#when = performance.now();
    this.#latest
      .ask(question)
      .then((answer) => {
        if (answer === undefined) return;
        this.answer = answer;
        this.failure = null;
        then?.(answer);
      })
      .catch((error: unknown) => (this.failure = sentence(error)));
  }

  stop(): void {
    clearTimeout(this.#later);
    this.#latest.stop();
  }
}
