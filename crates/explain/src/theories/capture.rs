//! Can the capture be trusted?

use std::collections::BTreeMap;

use tables::{DamagesView, SessionsView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, grouped,
};

/// Lost events, broken places, switches that contradict each other.
pub(crate) struct Capture;

pub(crate) static ABOUT: About = About {
    id: "capture",
    question: "Is anything lost or broken, so that conclusions are unsafe?",
    tables: &[Table::Damages, Table::CpuRuns, Table::Sessions],
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
            told.push(match contradictions {
                1 => "1 switch contradicts the one before on its processor".to_owned(),
                _ => format!(
                    "{} switches contradict the one before on their processor",
                    grouped(contradictions)
                ),
            });
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
            "The capture is incomplete: {}. Waits that touch the gaps are wrong; what was lost is in \
             no sum, and neither are runs of which is known that they last over a gap.",
            told.join(", ")
        );
        let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence);
        finding.evidence = finding_evidence;
        let kinds: Vec<&str> = kinds.keys().map(String::as_str).collect();
        for remedy in remedies(&kinds, is_relogged(case)?) {
            finding = finding.remedy(remedy);
        }
        if kinds.len() > 1 {
            finding = finding.doubt(
                "The same loss can show several times: in the log's header, at buffers, and as gaps \
                 between them",
            );
        }
        Ok(Outcome::For(vec![case.survey.doubtful.doubted(finding)]))
    }
}

/// What a session or its buffers say that they lost while they recorded.
const LOST: [&str; 5] = [
    "events_lost",
    "buffers_lost",
    "buffer_marks_lost_events",
    "buffer_marks_lost_buffers",
    "loss_events",
];

/// What clocks and sessions say of themselves, which makes no file a broken one.
const NO_FAULT: [&str; 5] = [
    "missing_sequence_numbers",
    "unfinished",
    "clock_inversion",
    "out_of_order",
    "implausible_time",
];

/// What to do about losses of these kinds; without any, about switches that contradict each other.
fn remedies(kinds: &[&str], is_relogged: bool) -> Vec<String> {
    let mut remedies = Vec::new();
    let has = |kind: &str| kinds.contains(&kind);
    let is_broken = kinds
        .iter()
        .any(|kind| !LOST.contains(kind) && !NO_FAULT.contains(kind));
    if is_broken {
        remedies.push(
            "Copy the file again from the machine that recorded it, and compare the sizes: it was cut \
             off, or parts of it were overwritten, after it was recorded"
                .to_owned(),
        );
    }
    if has("unfinished") {
        remedies.push(
            "Stop the session before its file is copied (xperf -stop, wpr -stop, logman stop)"
                .to_owned(),
        );
    }
    let is_lost = kinds.iter().any(|kind| LOST.contains(kind));
    if is_lost || has("missing_sequence_numbers") && !is_broken {
        remedies.push(format!("Record {}", ABOUT.record));
    }
    if kinds.is_empty() {
        remedies.push(match is_relogged {
            true => {
                "Look at the file that this one was made of: a relogger wrote it, and seems to \
                     have left out context switches"
                    .to_owned()
            }
            false => {
                "Record the context switches of all processes and CPUs, without a filter".to_owned()
            }
        });
    }
    remedies
}

/// Whether a session of the trace is not one that recorded, but one that wrote a trace anew.
fn is_relogged(case: &Case<'_>) -> Result<bool, StoreError> {
    let table = case.table(Table::Sessions)?;
    for batch in case.batches(&table, i64::MIN..i64::MAX, &["modes"]) {
        let batch = batch?;
        let view = SessionsView::new(&batch)?;
        let is_relog = |row| {
            view.modes
                .get(row)
                .is_some_and(|modes| modes.contains("RELOG"))
        };
        if (0..view.len()).any(is_relog) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of what is to be done.
    fn first_words(kinds: &[&str], is_relogged: bool) -> Vec<String> {
        let remedies = remedies(kinds, is_relogged).into_iter();
        let words = remedies.map(|remedy| remedy.split(' ').take(2).collect::<Vec<_>>().join(" "));
        words.collect()
    }

    #[test]
    fn who_loses_records_again_and_who_breaks_copies_again() {
        assert_eq!(first_words(&["events_lost"], false), ["Record again,"]);
        assert_eq!(first_words(&["truncated"], true), ["Copy the"]);
        assert_eq!(
            first_words(&["missing_sequence_numbers", "not_a_buffer"], false),
            ["Copy the"]
        );
        assert_eq!(
            first_words(&["events_lost", "unfinished", "decompress"], false),
            ["Copy the", "Stop the", "Record again,"]
        );
        assert_eq!(first_words(&[], true), ["Look at"]);
        assert_eq!(first_words(&[], false), ["Record the"]);
    }
}
