// What of a wait is drawn, and how long each part is.

import type { Verdict } from "../api/types";
import type { Step, WaitAnswer } from "./answer";

const STEPS: Record<Step["kind"], string> = {
  switched_out: "Switched out",
  readied: "Readied",
  waited_behind: "Waited behind others",
  ran: "Ran",
};

/** What a step is called. Who waits for a CPU while nobody runs waits behind nobody. */
export function stepName({ kind, evidence }: Step): string {
  return kind === "waited_behind" && !evidence?.rows.length ? "Waited for a CPU" : STEPS[kind];
}

/** A stretch of the wait. */
export interface Part {
  kind: "waiting" | "ready" | "running";
  from_ns: number;
  to_ns: number;
}

/**
 * What the thread did from the first to the last step: it waited until it was made ready, was ready until
 * it ran. A wait that has no readying was one for a CPU alone.
 */
export function partsOf(story: Step[]): Part[] {
  const time = (kind: Step["kind"]) => story.find((step) => step.kind === kind);
  const [out, readied, behind, ran] = [time("switched_out"), time("readied"), time("waited_behind"), time("ran")];
  const parts: Part[] = [];
  const add = (kind: Part["kind"], from?: number | null, to?: number | null) => {
    if (from !== undefined && from !== null && to !== undefined && to !== null && to > from) {
      parts.push({ kind, from_ns: from, to_ns: to });
    }
  };
  const ready = readied?.at_ns ?? behind?.at_ns;
  const end = ran?.at_ns ?? behind?.until_ns;
  if (readied) add("waiting", out?.at_ns, readied.at_ns);
  else if (!behind) add("waiting", out?.at_ns, ran?.at_ns);
  add("ready", ready, end);
  add("running", ran?.at_ns, ran?.until_ns);
  return parts;
}

/** Theories as one reads them: what holds first, by how much it explains; then what is not recorded. */
export function ordered(theories: Verdict[]): Verdict[] {
  const place = { for: 0, not_recorded: 1, against: 2 };
  return theories.toSorted(
    (one, other) =>
      place[one.judgement] - place[other.judgement] || (other.explains_ns ?? 0) - (one.explains_ns ?? 0),
  );
}

/** How long the wait was that theories explain: how long it was ready, else how long it waited. */
export function waitedNs(answer: WaitAnswer): number {
  const parts = partsOf(answer.story);
  const part = parts.find(({ kind }) => kind === "ready") ?? parts.find(({ kind }) => kind === "waiting");
  return part ? part.to_ns - part.from_ns : 0;
}
