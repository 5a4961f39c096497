//! Can the capture be trusted?

use std::collections::BTreeMap;

use tables::{DamagesView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, grouped,
};

/// Lost events, broken places, switches that contradict each other.
pub(crate) struct Capture;

static ABOUT: About = About {
    id: "capture",
    question: "Is anything lost or broken, so that conclusions are unsafe?",
    tables: &[Table::Damages, Table::CpuRuns],
    record: "again, with more and larger buffers (xperf -BufferSize 1024 -MinBuffers 256; WPR: a \
             profile with larger Buffers), to a quick disk or to memory (circular)",
    sources: &[Source {
        title: "Microsoft: EVENT_TRACE_PROPERTIES (EventsLost, BufferSize, MinimumBuffers)",
        url: "https://learn.microsoft.com/windows/win32/api/evntrace/ns-evntrace-event_trace_properties",
    }],
};

impl Theory for Capture {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        // Of each kind: rows, their counts as far as known, from when to when.
        let mut kinds: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
        let table = case.table(Table::Damages)?;
        for batch in case.batches(&table, i64::MIN..i64::MAX, &["start_ns", "kind", "count"]) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).unwrap_or_default();
                let (rows, count) = kinds.entry(kind.to_owned()).or_default();
                *rows += 1;
                if let Some(more) = view.count.get(row) {
                    *count = Some(count.unwrap_or(0).saturating_add(more));
                }
            }
        }
        let contradictions = case.survey.contradictions;
        if kinds.is_empty() && contradictions == 0 {
            let because = "nothing is known to be lost or broken";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let mut told: Vec<String> = Vec::new();
        let mut evidence = Evidence::new(
            "What is lost or broken",
            "SELECT coalesce(kind, '') AS kind, count(*) AS places, sum(count) AS lost FROM damage \
             GROUP BY kind ORDER BY kind",
            &[
                Column::new("kind", "kind", Unit::None),
                Column::new("places", "places", Unit::Count),
                Column::new("lost", "number", Unit::Count),
            ],
        );
        for (kind, (rows, count)) in &kinds {
            let cells = [
                Some(kind.as_str().into()),
                Some((*rows).into()),
                count.map(Into::into),
            ];
            evidence = evidence.row(cells);
            let number = count.unwrap_or(*rows);
            told.push(format!("{} {}", grouped(number), kind.replace('_', " ")));
        }
        let mut finding_evidence = vec![evidence];
        if contradictions > 0 {
            told.push(format!(
                "{} switches contradict the one before on their processor",
                grouped(contradictions)
            ));
            finding_evidence.push(
                Evidence::new(
                    "Runs that began when another thread was announced",
                    "SELECT count(*) AS runs, sum(cpu_ns) AS cpu_ns FROM cpu_runs WHERE \
                     planned_thread_id IS NOT NULL",
                    &[
                        Column::new("runs", "runs", Unit::Count),
                        Column::new("cpu_ns", "CPU time", Unit::Duration),
                    ],
                )
                .row([
                    Some(contradictions.into()),
                    Some(case.survey.contradicted_ns.into()),
                ]),
            );
        }
        let sentence = format!(
            "The capture is incomplete: {}. Sums are too small, and waits and runs that touch the \
             gaps are wrong.",
            told.join(", ")
        );
        let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence)
            .remedy(format!("Record {}", ABOUT.record))
            .doubt(
                "The same loss can show several times: in the log's header, at buffers, and as gaps \
                 between them",
            );
        finding.evidence = finding_evidence;
        Ok(Outcome::For(vec![finding]))
    }
}
