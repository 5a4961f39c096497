//! Can the capture be trusted?

use std::collections::BTreeMap;
use std::ops::Range;

use tables::{DamagesView, SessionsView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, grouped,
    moment,
};

/// Lost events, broken places, switches that contradict each other.
pub(crate) struct Capture;

pub(crate) static ABOUT: About = About {
    id: "capture",
    question: "Is anything lost or broken, so that conclusions are unsafe?",
    tables: &[Table::Damages, Table::CpuRuns, Table::Sessions],
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
        let mut then: Vec<Gap> = Vec::new();
        let table = case.table(Table::Damages)?;
        let columns = ["start_ns", "end_ns", "kind", "count", "cpu"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).unwrap_or_default();
                let (rows, count) = kinds.entry(kind.to_owned()).or_default();
                *rows += 1;
                then.extend(Gap::of(case, &view, row));
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
            told.push(format!("{} {}", grouped(number), words(kind, number)));
        }
        let mut finding_evidence = match kinds.is_empty() {
            true => Vec::new(),
            false => vec![evidence],
        };
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
        let kinds: Vec<&str> = kinds.keys().map(String::as_str).collect();
        let forgot = kinds == ["missing_sequence_numbers"] && contradictions == 0;
        let (severity, sentence) = match forgot && case.survey.complete.is_of_ring() {
            true => (
                Severity::Information,
                format!(
                    "The session kept its latest buffers only, as it was told to ({}).",
                    told.join(", ")
                ),
            ),
            false => (
                Severity::Warning,
                format!(
                    "The capture is incomplete: {}. Waits that touch the gaps are wrong; what was lost \
                     is in no sum, and neither are runs of which is known that they last over a gap.",
                    told.join(", ")
                ),
            ),
        };
        let mut finding = Finding::new(&ABOUT, severity, sentence);
        finding.evidence = finding_evidence;
        if let Some(asked) = case.asked.during.as_ref().filter(|_| !then.is_empty()) {
            finding = then_missing(finding, asked, then);
        }
        for remedy in remedies(&kinds, is_relogged(case)?) {
            finding = finding.remedy(remedy);
        }
        if kinds.len() > 1 {
            finding = finding.doubt(
                "The same loss can show several times: in the log's header, at buffers, and as gaps \
                 between them",
            );
        }
        let finding = case.survey.complete.doubted(finding);
        Ok(Outcome::For(vec![case.survey.doubtful.doubted(finding)]))
    }
}

/// Between when something is missing that may be of the time that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    start_ns: i64,
    end_ns: i64,
    /// Of which CPU, if that is known.
    cpu: Option<u16>,
    kind: String,
}

impl Gap {
    fn of(case: &Case<'_>, damages: &DamagesView<'_>, row: usize) -> Option<Gap> {
        let asked = case.asked.during.as_ref()?;
        let gap = Gap {
            start_ns: damages.start_ns[row],
            end_ns: damages.end_ns.get(row)?,
            cpu: damages.cpu.get(row),
            kind: damages.kind.get(row).unwrap_or_default().to_owned(),
        };
        let is_then = gap.start_ns < asked.end && asked.start < gap.end_ns;
        (is_then && !NO_FAULT.contains(&gap.kind.as_str())).then_some(gap)
    }
}

/// The finding, with what is missing at the time that is asked for.
fn then_missing(mut finding: Finding, asked: &Range<i64>, mut gaps: Vec<Gap>) -> Finding {
    const SHOWN: usize = 20;
    gaps.sort();
    let harmless = NO_FAULT.map(|kind| format!("'{kind}'")).join(", ");
    let query = format!(
        "SELECT cpu, start_ns, end_ns, coalesce(kind, '') AS kind FROM damage WHERE start_ns < {} AND \
         end_ns > {} AND coalesce(kind, '') NOT IN ({harmless}) ORDER BY start_ns, end_ns, cpu NULLS \
         FIRST, kind LIMIT {SHOWN}",
        asked.end, asked.start
    );
    let columns = [
        Column::new("cpu", "CPU", Unit::None),
        Column::new("start_ns", "from", Unit::Moment),
        Column::new("end_ns", "to", Unit::Moment),
        Column::new("kind", "kind", Unit::None),
    ];
    let title = "What is missing that may be of the time asked for";
    let mut evidence = Evidence::new(title, query, &columns);
    for gap in gaps.iter().take(SHOWN) {
        evidence = evidence.row([
            gap.cpu.map(Into::into),
            Some(gap.start_ns.into()),
            Some(gap.end_ns.into()),
            Some(gap.kind.as_str().into()),
        ]);
    }
    let start = gaps.iter().map(|gap| gap.start_ns).min();
    let end = gaps.iter().map(|gap| gap.end_ns).max();
    if let Some((start, end)) = start.zip(end) {
        finding.sentence += &format!(
            " What is missing between {} and {} may be of the time that is asked for: whether threads \
             waited then is not known for sure.",
            moment(start),
            moment(end)
        );
        finding = finding.during(start..end);
    }
    finding.with(evidence)
}

/// A kind of damage in words: so many `events lost`.
fn words(kind: &str, number: u64) -> String {
    let words = kind.replace('_', " ");
    match number {
        1 => ["numbers", "events", "buffers"]
            .into_iter()
            .filter(|many| !words.starts_with("buffer marks") && words.contains(many))
            .fold(words.clone(), |words, many| {
                words.replace(many, many.trim_end_matches('s'))
            }),
        _ => words,
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
        remedies.extend(record::needs::of(ABOUT.id).map(|needs| format!("Record {needs}")));
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
    fn one_of_a_kind_is_not_told_as_many() {
        assert_eq!(
            words("missing_sequence_numbers", 1),
            "missing sequence number"
        );
        assert_eq!(
            words("missing_sequence_numbers", 2),
            "missing sequence numbers"
        );
        assert_eq!(words("events_lost", 1), "event lost");
        assert_eq!(words("truncated", 1), "truncated");
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
