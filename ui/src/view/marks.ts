// Marks on the time axis.

import type { Finding, Range } from "../api/types";

/** Time range or moment that is marked. */
export interface Mark {
  kind: "finding" | "input" | "focus";
  range: Range;
  /** Severity, if the mark is a finding. */
  severity?: Finding["severity"];
  text: string;
  /** Index of the finding, if the mark is a finding. */
  finding?: number;
}

/** Returns marks for those findings that have a time range. */
export function marksOf(findings: readonly Finding[]): Mark[] {
  return findings.flatMap((finding, place) =>
    finding.during === undefined
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
