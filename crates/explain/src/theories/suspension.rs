//! Theory: the machine was suspended.

use tables::{StoreError, Table};

use crate::{About, Case, Finding, Outcome, Severity, Theory, duration};

/// Theory about suspend gaps, during which no CPU logged an event.
pub(crate) struct Suspension;

static ABOUT: About = About {
    id: "suspended",
    name: "suspension",
    question: "Was the machine suspended during the trace?",
    tables: &[
        Table::CpuRuns,
        Table::Interrupts,
        Table::Samples,
        Table::ReadyThreads,
    ],
    sources: &[],
};

impl Theory for Suspension {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "the trace has no context switches".to_owned(),
            ));
        }
        let silences = &case.survey.suspend_gaps;
        let ranges = silences.ranges.iter();
        let Some(longest) = ranges.max_by_key(|range| range.end - range.start) else {
            let because = format!(
                "at no time were all CPUs silent for {} or longer",
                duration(silences.at_least_ns)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        };
        let ranges = silences.ranges.iter();
        let all_ns: i64 = ranges.map(|range| range.end - range.start).sum();
        let sentence = format!(
            "No CPU logged an event for {} in total; the longest gap is from {} to {}. The machine was suspended, or \
             this time was not recorded.",
            duration(all_ns),
            duration(longest.start),
            duration(longest.end)
        );
        let finding = Finding::new(&ABOUT, Severity::Information, sentence)
            .during(longest.clone())
            .with(silences.evidence(&case.survey.span));
        Ok(Outcome::For(vec![finding]))
    }
}
