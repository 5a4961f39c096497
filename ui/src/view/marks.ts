// What is marked on the axis of time.

import type { Finding, Range } from "../api/types";

/** A stretch or a moment of interest. */
export interface Mark {
  kind: "finding" | "input" | "focus";
  range: Range;
  /** How severe a finding is. */
  severity?: Finding["severity"];
  text: string;
  /** Which finding it is. */
  finding?: number;
}

/** The findings that have a time, as marks. */
export function marksOf(findings: readonly Finding[]): Mark[] {
  return findings.flatMap((finding, place) =>
    finding.during === null || finding.during === undefined
      ? []
      : [
          {
            kind: "finding" as const,
            range: [finding.during.start, finding.during.end] as Range,
            severity: finding.severity,
            text: finding.sentence,
            finding: place,
          },
        ],
  );
}
