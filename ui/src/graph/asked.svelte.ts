// What one part of the page asked for last.

import { Latest, sentence } from "../api/client";

/** An answer that is replaced when another question is asked; the older stays until then. */
export class Asked<T> {
  answer = $state.raw<T | null>(null);
  failure = $state<string | null>(null);
  #latest = new Latest();

  ask(question: (signal: AbortSignal) => Promise<T>, then?: (answer: T) => void): void {
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
    this.#latest.stop();
  }
}
