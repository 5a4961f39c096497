// Parts of a wait, with their durations.

import type { Story, StoryEvent, Verdict } from "../api/types";

const STEPS: Record<StoryEvent["kind"], string> = {
  switched_out: "Switched out",
  readied: "Readied",
  waited_behind: "Waited behind others",
  ran: "Ran",
};

/**
 * Returns the name of a step for the user. If the evidence shows no other threads, the thread waited only
 * until an idle CPU was ready to run it.
 */
export function stepName({ kind, evidence }: StoryEvent): string {
  return kind === "waited_behind" && !evidence?.rows.length ? "Waited for a CPU" : STEPS[kind];
}

/** Part of a wait. */
export interface Part {
  kind: "waiting" | "ready" | "running";
  from_ns: number;
  to_ns: number;
}

/**
 * Returns the parts of a wait. The thread waits until it is readied. It is then ready until it runs. If the story has
 * no wake but a wait for a CPU, the thread is ready during this wait. If the story has neither, the thread waits until
 * it runs, or until the trace ends.
 */
export function partsOf(story: StoryEvent[]): Part[] {
  const time = (kind: StoryEvent["kind"]) => story.find((step) => step.kind === kind);
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
  else if (!behind) add("waiting", out?.at_ns, ran?.at_ns ?? out?.until_ns);
  add("ready", ready, end);
  add("running", ran?.at_ns, ran?.until_ns);
  return parts;
}

/**
 * Sorts verdicts of theories: first "for" (by the time that they explain), then "not recorded", then
 * "against".
 */
export function ordered(theories: Verdict[]): Verdict[] {
  const place = { for: 0, not_recorded: 1, against: 2 };
  return theories.toSorted(
    (one, other) => place[one.judgement] - place[other.judgement] || (other.explains_ns ?? 0) - (one.explains_ns ?? 0),
  );
}

/**
 * Returns the duration that theories explain, in nanoseconds. It is the ready time, or the waiting time if
 * there is no ready time.
 */
export function waitedNs(answer: Story): number {
  const parts = partsOf(answer.story);
  const part = parts.find(({ kind }) => kind === "ready") ?? parts.find(({ kind }) => kind === "waiting");
  return part ? part.to_ns - part.from_ns : 0;
}
