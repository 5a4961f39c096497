// Latest answer to the requests of one part of the page.

import { Latest, messageOf } from "../api/client";

/**
 * Minimum time between requests. If the request changes more often, as during panning, only the last request
 * is sent.
 */
const PAUSE_MS = 120;

/** Answer to a request. It is kept until the answer to the next request arrives. */
export class LatestAnswer<T> {
  answer = $state.raw<T | null>(null);
  failure = $state<string | null>(null);
  #latest = new Latest();
  #when = -Infinity;
  #later: ReturnType<typeof setTimeout> | undefined;

  ask(send: (signal: AbortSignal) => Promise<T>, then?: (answer: T) => void): void {
    clearTimeout(this.#later);
    const wait = this.#when + PAUSE_MS - performance.now();
    if (wait > 0) this.#later = setTimeout(() => this.#now(send, then), wait);
    else this.#now(send, then);
  }

  #now(send: (signal: AbortSignal) => Promise<T>, then?: (answer: T) => void): void {
    this.#when = performance.now();
    this.#latest
      .ask(send)
      .then((answer) => {
        if (answer === undefined) return;
        this.answer = answer;
        this.failure = null;
        then?.(answer);
      })
      .catch((error: unknown) => (this.failure = messageOf(error)));
  }

  stop(): void {
    clearTimeout(this.#later);
    this.#latest.stop();
  }
}
