// Run or interrupt under the pointer, and its description.

import { duration, moment, percent } from "../format";
import type { CpuLane, LanesAnswer, Wake } from "../api/types";
import { label } from "./label";
import { containing, nearest } from "../canvas/order";

/** Run or interrupt in a lane. */
export interface Hit {
  lane: number;
  interrupt: boolean;
  /** Index in the lane's runs or interrupts. */
  place: number;
  start_ns: number;
  end_ns: number;
}

/**
 * Finds the run or interrupt at a time on a lane. If there is none, finds the nearest run at a distance of
 * at most `within`.
 */
export function hitAt(
  answer: LanesAnswer,
  lane: number,
  time: number,
  within: number,
  interrupts: boolean,
): Hit | null {
  const cpu = answer.cpus[lane];
  if (!cpu) return null;
  if (interrupts) {
    const { start, end } = cpu.interrupts;
    const place = nearest(start, end, time, within);
    if (place >= 0) return { lane, interrupt: true, place, start_ns: start[place], end_ns: end[place] };
  }
  const { start, end } = cpu.runs;
  let place = containing(start, end, time);
  // Runs that are shorter than a pixel are hard to hit, so take the nearest run.
  if (place < 0) place = nearest(start, end, time, within);
  if (place < 0) return null;
  return { lane, interrupt: false, place, start_ns: start[place], end_ns: end[place] };
}

/** Returns the next or previous run on the same CPU. */
export function neighbour(answer: LanesAnswer, hit: Hit, step: 1 | -1): Hit | null {
  const { start, end } = answer.cpus[hit.lane].runs;
  const place = hit.place + step;
  if (place < 0 || place >= start.length) return null;
  return { lane: hit.lane, interrupt: false, place, start_ns: start[place], end_ns: end[place] };
}

/** Returns the wake that led to a run. */
export function wakeOf(answer: LanesAnswer, hit: Hit): Wake | null {
  if (hit.interrupt || !answer.exact) return null;
  const { cpu, runs } = answer.cpus[hit.lane];
  const led = (wake: Wake) =>
    wake.to_cpu === cpu && wake.run_start_ns === hit.start_ns && wake.thread === runs.thread[hit.place];
  return answer.wakes.find(led) ?? null;
}

/** Returns the title and the lines of the tooltip: process, thread and times. */
export function described(answer: LanesAnswer, hit: Hit): { title: string; lines: [string, string][] } {
  const cpu = answer.cpus[hit.lane];
  const length = hit.end_ns - hit.start_ns;
  const exact = hit.interrupt ? answer.interrupts_exact : answer.exact;
  // At the edges of the time range, the actual run may be longer than the run in the answer.
  const isCut = exact && (hit.start_ns <= answer.start_ns || hit.end_ns >= answer.end_ns);
  const when: [string, string][] = [
    ["from", moment(hit.start_ns, Math.max(length / 100, 100))],
    [exact ? "for" : "within", `${isCut ? "at least " : ""}${duration(length)}`],
    ["CPU", String(cpu.cpu)],
  ];
  return hit.interrupt ? interrupt(answer, cpu, hit, when) : run(answer, cpu, hit, when);
}

function interrupt(answer: LanesAnswer, { interrupts }: CpuLane, hit: Hit, when: [string, string][]) {
  const title = `${kindOf(interrupts.kind[hit.place])} of ${label(answer.labels.image, interrupts.image[hit.place])}`;
  return { title, lines: [...when, ...busy(answer.interrupts_exact, interrupts.busy[hit.place])] };
}

function run(answer: LanesAnswer, { runs }: CpuLane, hit: Hit, when: [string, string][]) {
  const title = label(answer.labels.process, runs.process[hit.place]);
  const lines: [string, string][] = [...when, ...busy(answer.exact, runs.busy[hit.place])];
  if (answer.exact) lines.unshift(["thread", label(answer.labels.thread, runs.thread[hit.place])]);
  const wake = wakeOf(answer, hit);
  if (wake) {
    const who = label(answer.labels.thread, wake.readying_thread);
    lines.push(["readied by", wake.by_dpc ? "a DPC" : who], ["was ready", duration(wake.run_start_ns - wake.at_ns)]);
  }
  return { title, lines };
}

function busy(exact: boolean, share: number): [string, string][] {
  return exact ? [] : [["busy", percent(share)]];
}

const KINDS = new Map(
  Object.entries({
    dpc: "DPC",
    threaded_dpc: "threaded DPC",
    timer_dpc: "timer DPC",
    io_timer: "I/O timer",
    isr: "ISR",
    msi: "ISR (MSI)",
    passive_isr: "passive ISR",
  }),
);

/** Returns the name of a kind of interrupt for the user. */
export function kindOf(kind: string): string {
  return KINDS.get(kind) ?? kind;
}
