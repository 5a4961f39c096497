// Script of the HTML reports. It draws the data that the file contains: the comparison of `laglab prove diff`, or the
// pictures of `laglab report` or `laglab prove compare` in the places that the file has for them.

import { mount } from "svelte";
import type { Comparison, Range, ReportData, ReportPicture, RunsPicture } from "../api/types";
import "../colours.css";
import "../app.css";
import "./report.css";
import ComparisonReport from "../comparison/Report.svelte";
import Runs from "../runs/Runs.svelte";
import type { Mark } from "../view/marks";
import { parse } from "../visible";
import Picture from "./Picture.svelte";
import { Shared } from "./shared.svelte";
import ThemeChoice from "./ThemeChoice.svelte";
import Times from "./Times.svelte";

type Content = { comparison: Comparison } | { report: ReportData } | { runs: RunsPicture[] };

const content = parse(document.getElementById("data")!.textContent) as Content;
if ("comparison" in content) mount(ComparisonReport, { target: document.getElementById("page")!, props: content });
else if ("report" in content) drawReport(content.report);
else drawRuns(content.runs);

/** Returns the places of the file's pictures, with the index of each picture. */
function places(): [HTMLElement, number][] {
  const places = document.querySelectorAll<HTMLElement>("[data-picture]");
  return Array.from(places, (place) => [place, Number(place.dataset["picture"])]);
}

function drawRuns(pictures: RunsPicture[]): void {
  for (const [target, place] of places()) mount(Runs, { target, props: { picture: pictures[place] } });
}

function drawReport(data: ReportData): void {
  const marks = data.findings.map(({ number, severity, range, sentence }): Mark => ({
    kind: "finding",
    range,
    severity,
    text: sentence,
    finding: number - 1,
  }));
  // Graphs of the same time range are zoomed together.
  const ranges = new Map<string, Shared>();
  const sharedOf = (range: Range): Shared => {
    const known = ranges.get(range.join()) ?? new Shared(range);
    ranges.set(range.join(), known);
    return known;
  };
  mount(ThemeChoice, { target: document.getElementById("theme")! });
  const times = document.getElementById("times");
  if (times && data.range) mount(Times, { target: times, props: { marks, shared: sharedOf(data.range) } });
  for (const [target, place] of places()) {
    const picture = data.pictures[place];
    const shared = sharedOf(rangeOf(picture) ?? [0, 1]);
    mount(Picture, { target, props: { picture, data, marks, shared } });
  }
}

/** Returns the time range of a picture with a time axis; `null` for other pictures. */
function rangeOf({ answer }: ReportPicture): Range | null {
  if ("timeline" in answer) return [answer.timeline.start_ns, answer.timeline.end_ns];
  if ("heat" in answer) return [answer.heat.start_ns, answer.heat.end_ns];
  return "lanes" in answer ? [answer.lanes.start_ns, answer.lanes.end_ns] : null;
}
