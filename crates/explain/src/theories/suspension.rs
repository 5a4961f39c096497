//! Was the machine asleep?

use tables::{StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Load, Outcome, Severity, Theory, Unit, duration,
};

/// Stretches in which nothing ran.
pub(crate) struct Suspension;

static ABOUT: About = About {
    id: "suspended",
    question: "Did the machine sleep during the trace?",
    tables: &[Table::CpuRuns],
    record: "context switches (xperf -on CSWITCH, WPR keyword CSwitch), and the provider \
             Microsoft-Windows-Kernel-Power, which tells why",
    sources: &[],
};

/// Rows shown.
const SHOWN: usize = 10;

impl Theory for Suspension {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "there are no context switches".to_owned(),
            ));
        }
        let silences = &case.survey.load.silences;
        let Some(longest) = silences.iter().max_by_key(|range| range.end - range.start) else {
            let because = format!(
                "processors switched threads at least every {}",
                duration(Load::SILENCE_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        };
        let all_ns: i64 = silences.iter().map(|range| range.end - range.start).sum();
        let mut evidence = Evidence::new(
            "When no processor switched threads",
            format!(
                "SELECT from_ns, to_ns, to_ns - from_ns AS silent_ns FROM (SELECT lag(end_ns) OVER \
                 (ORDER BY end_ns) AS from_ns, end_ns AS to_ns FROM cpu_runs) AS gaps WHERE to_ns - \
                 from_ns >= {} ORDER BY from_ns LIMIT {SHOWN}",
                Load::SILENCE_NS
            ),
            &[
                Column::new("from_ns", "from", Unit::Moment),
                Column::new("to_ns", "to", Unit::Moment),
                Column::new("silent_ns", "for", Unit::Duration),
            ],
        );
        for range in silences.iter().take(SHOWN) {
            let cells = [range.start, range.end, range.end - range.start];
            evidence = evidence.row(cells.map(|cell| Some(cell.into())));
        }
        let sentence = format!(
            "For {} no processor switched threads, longest from {} to {}: the machine slept, or \
             nothing of that time was recorded.",
            duration(all_ns),
            duration(longest.start),
            duration(longest.end)
        );
        let finding = Finding::new(&ABOUT, Severity::Information, sentence)
            .during(longest.clone())
            .with(evidence);
        Ok(Outcome::For(vec![finding]))
    }
}
