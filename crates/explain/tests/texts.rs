//! Text of explanations for the user.

use explain::{Explanation, Finding};

/// Returns all text of a finding for the user.
pub(crate) fn text(finding: &Finding) -> String {
    let weighed = finding.weighed.iter().flat_map(|it| {
        let record = it
            .record
            .map(|missing| missing.to_string())
            .unwrap_or_default();
        [
            it.name.to_owned(),
            it.question.to_owned(),
            it.because.to_string(),
            record,
        ]
    });
    let parts = [&finding.why[..], &finding.remedies, &finding.doubts].concat();
    let parts = parts.iter().map(ToString::to_string);
    let sources = finding.sources.iter().map(|it| it.title.to_owned());
    let evidence = finding.evidence.iter().flat_map(|it| {
        let columns = it.columns.iter().map(|column| column.label.to_owned());
        columns.chain([it.title.to_string()])
    });
    let text: Vec<String> = (parts.chain(weighed).chain(sources))
        .chain(evidence)
        .collect();
    format!("{} {}", finding.sentence, text.join(" "))
}

/// Checks that no text of an explanation speaks of Windows.
pub(crate) fn is_about_linux(explanation: &Explanation) {
    let of_findings = explanation.findings.iter().map(text);
    let of_theories = explanation.theories.iter().map(|it| {
        let record = it
            .record
            .map(|missing| missing.to_string())
            .unwrap_or_default();
        format!("{} {} {record}", it.question, it.because)
    });
    for text in of_findings.chain(of_theories) {
        for word in [
            "Windows",
            "Microsoft",
            "DPC",
            "DPCs",
            "ISR",
            "ISRs",
            "xperf",
            "wpr",
            "WPR",
            "quantum",
            "rank",
            "ETW",
        ] {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            assert!(!words.any(|it| it == word), "{word}: {text}");
        }
    }
}
