//! Theory: the capture is incomplete.

use std::collections::BTreeMap;
use std::ops::Range;

use selection::{Condition, Expression, Order, Selection};
use tables::{Damages, DamagesView, SessionsView, StoreError, Table};

use crate::survey::Effect;
use crate::thresholds::{SKIPPED_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, grouped,
    moment,
};

/// Theory about lost events, damage, missing CPUs and contradicting context switches.
pub(crate) struct Capture;

static ABOUT: About = About {
    id: "capture",
    name: "lost events",
    question: "Are events lost or damaged, so that conclusions are unsafe?",
    tables: &[Table::Damages, Table::CpuRuns, Table::Sessions],
    sources: &[Source {
        title: "Microsoft: EVENT_TRACE_PROPERTIES (EventsLost, BufferSize, MinimumBuffers)",
        url: Some(
            "https://learn.microsoft.com/windows/win32/api/evntrace/ns-evntrace-event_trace_properties",
        ),
    }],
};

static LINUX_SOURCE: Source = Source {
    title: "Linux manual: perf_event_open(2), PERF_RECORD_LOST",
    url: Some("https://man7.org/linux/man-pages/man2/perf_event_open.2.html"),
};

impl Theory for Capture {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn is_about_recording(&self) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let Losses { kinds, gaps } = Losses::read(case)?;
        let contradictions = case.survey.contradictions;
        let missing = case.survey.complete.missing();
        if kinds.is_empty() && contradictions == 0 && missing.is_none() {
            let because = "no loss or damage is known";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let mut losses: Vec<String> = Vec::new();
        losses.extend(missing.map(|missing| format!("no record of {missing}")));
        losses.extend(phrases(&kinds));
        let mut evidence = Vec::new();
        if !kinds.is_empty() {
            evidence.push(by_kind(&kinds));
        }
        if contradictions > 0 {
            losses.push(counted(
                contradictions,
                "context switch away from a thread that the CPU's previous switch did not start",
                "context switches away from threads that the CPU's previous switch did not start",
            ));
            evidence.push(contradicted_runs(case));
        }
        let kinds: Vec<&str> = kinds.keys().map(String::as_str).collect();
        let losses = losses.join(", ");
        let has_only_gaps = kinds == ["missing_sequence_numbers"] && contradictions == 0;
        let (severity, sentence) = if has_only_gaps && case.survey.complete.is_of_ring() {
            (
                Severity::Information,
                format!("The session kept only its latest buffers, as configured ({losses})."),
            )
        } else if has_only_skipped_switches(case, &kinds) {
            (
                Severity::Information,
                format!(
                    "The kernel did not log all context switches, as some kernels of Linux do: {losses}. Waits near \
                     them may be wrong. Sums of CPU time exclude such runs."
                ),
            )
        } else {
            (
                Severity::Warning,
                format!(
                    "The capture is incomplete: {losses}. Waits near the gaps may be wrong. Sums of CPU \
                     time exclude lost events and runs that are known to contain a gap."
                ),
            )
        };
        let mut finding = Finding::new(&ABOUT, severity, sentence);
        finding.evidence = evidence;
        if case.is_linux() {
            finding.sources = vec![LINUX_SOURCE];
        }
        if let Some(asked) = case.scope.during.as_ref().filter(|_| !gaps.is_empty()) {
            finding = then_missing(finding, asked, gaps);
        }
        let remedies = if case.is_linux() {
            linux_remedies(&kinds)
        } else {
            remedies(&kinds, is_relogged(case)?)
        };
        for remedy in remedies {
            finding = finding.remedy(remedy);
        }
        // The kernel of Linux reports each loss once.
        if kinds.len() > 1 && !case.is_linux() {
            finding = finding.doubt(
                "The same loss can be counted several times: in the file header, in buffers, and \
                 as gaps between buffers",
            );
        }
        let finding = case.survey.complete.doubted(finding);
        Ok(Outcome::For(vec![case.survey.doubtful.doubted(finding)]))
    }
}

/// Returns true if a recording of Linux lost no event, and only a small part of its CPU time is uncertain because
/// context switches are missing.
fn has_only_skipped_switches(case: &Case<'_>, kinds: &[&str]) -> bool {
    let survey = &case.survey;
    case.is_linux()
        && kinds.is_empty()
        && survey.complete.missing().is_none()
        && !is_share(
            survey.contradicted_ns,
            survey.all_cpus_ns(),
            SKIPPED_PERCENT,
        )
}

/// Kinds of damage. Each kind has the number of its rows, and the sum of their counts if the counts are known.
type Kinds = BTreeMap<String, (u64, Option<u64>)>;

/// Losses and damage of a trace.
struct Losses {
    kinds: Kinds,
    /// Gaps within the time range in scope.
    gaps: Vec<Gap>,
}

impl Losses {
    fn read(case: &Case<'_>) -> Result<Losses, StoreError> {
        let (mut kinds, mut gaps) = (Kinds::new(), Vec::new());
        let table = case.table(Table::Damages)?;
        let columns = ["start_ns", "end_ns", "kind", "count", "cpu"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).unwrap_or_default();
                let (rows, count) = kinds.entry(kind.to_owned()).or_default();
                *rows += 1;
                gaps.extend(Gap::read(case, &view, row));
                if let Some(more) = view.count.get(row) {
                    *count = Some(count.unwrap_or(0).saturating_add(more));
                }
            }
        }
        Ok(Losses { kinds, gaps })
    }
}

/// Returns a phrase for each kind of damage. Kinds with the same words have one phrase.
fn phrases(kinds: &Kinds) -> Vec<String> {
    let mut numbers: Vec<(&str, u64)> = Vec::new();
    for (kind, (rows, count)) in kinds {
        let number = count.unwrap_or(*rows);
        let mut known = numbers.iter_mut();
        match known.find(|(known, _)| words(known, 2) == words(kind, 2)) {
            Some((_, sum)) => *sum += number,
            None => numbers.push((kind, number)),
        }
    }
    numbers.sort_by_key(|(kind, _)| !Damages::lacks_descriptions(kind));
    let phrases = numbers
        .iter()
        .map(|(kind, number)| format!("{} {}", grouped(*number), words(kind, *number)));
    phrases.collect()
}

fn by_kind(kinds: &Kinds) -> Evidence {
    let selection = Selection::new(Table::Damages)
        .group_by(&["kind"])
        .order(&[Order::ascending("kind")]);
    let evidence = Evidence::from_selection("Losses and damage", selection)
        .column("kind", "kind", Unit::None, Expression::TextOrEmpty("kind"))
        .column("places", "places", Unit::Count, Expression::Count)
        .column("lost", "number", Unit::Count, Expression::Sum("count"));
    kinds
        .iter()
        .fold(evidence, |evidence, (kind, (rows, count))| {
            evidence.row([
                Some(kind.as_str().into()),
                Some((*rows).into()),
                count.map(Into::into),
            ])
        })
}

/// Returns evidence with the runs of threads that no context switch started.
fn contradicted_runs(case: &Case<'_>) -> Evidence {
    let selection = Selection::new(Table::CpuRuns).filter(Condition::IsKnown("planned_thread_id"));
    let title = "Runs of threads that the CPU's previous context switch did not start";
    let cpu_ns = Expression::Sum("cpu_ns");
    Evidence::from_selection(title, selection)
        .column("runs", "runs", Unit::Count, Expression::Count)
        .column("cpu_ns", "CPU time", Unit::Duration, cpu_ns)
        .row([
            Some(case.survey.contradictions.into()),
            Some(case.survey.contradicted_ns.into()),
        ])
}

/// Time range in which events may be missing. It overlaps the time range in scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    start_ns: i64,
    end_ns: i64,
    /// Number of the CPU, if it is known.
    cpu: Option<u16>,
    kind: String,
}

impl Gap {
    fn read(case: &Case<'_>, damages: &DamagesView<'_>, row: usize) -> Option<Gap> {
        let range = case.scope.during.as_ref()?;
        let gap = Gap {
            start_ns: damages.start_ns[row],
            end_ns: damages.end_ns.get(row)?,
            cpu: damages.cpu.get(row),
            kind: damages.kind.get(row).unwrap_or_default().to_owned(),
        };
        let is_then = gap.start_ns < range.end && range.start < gap.end_ns;
        (is_then && is_gap(Effect::from_kind(&gap.kind))).then_some(gap)
    }
}

/// Returns true if damage with this effect can be located in time, so that events are missing then.
fn is_gap(effect: Effect) -> bool {
    effect == Effect::Lost || effect.is_fault_of_file()
}

/// Adds a sentence and evidence about events that may be missing in the time range in scope.
fn then_missing(mut finding: Finding, asked: &Range<i64>, mut gaps: Vec<Gap>) -> Finding {
    const SHOWN: usize = 20;
    gaps.sort();
    let selection = Selection::new(Table::Damages)
        .filter(Condition::Below("start_ns", asked.end))
        .filter(Condition::AtLeast("end_ns", asked.start.saturating_add(1)))
        .filter(Condition::IsNotText(
            "kind",
            Effect::kinds(|effect| !is_gap(effect)),
        ))
        .order(&[
            Order::ascending("start_ns"),
            Order::ascending("end_ns"),
            Order::ascending("cpu").unknown_first(),
            Order::ascending("kind"),
        ])
        .limit(SHOWN);
    let title = "Missing events that may be from the requested time";
    let mut evidence = Evidence::from_selection(title, selection)
        .stored("cpu", "CPU", Unit::None)
        .stored("start_ns", "from", Unit::Moment)
        .stored("end_ns", "to", Unit::Moment)
        .column("kind", "kind", Unit::None, Expression::TextOrEmpty("kind"));
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
        let sentence = format!(
            "{:#} Events that are missing between {} and {} may be from the requested time, so waits in this time \
             are uncertain.",
            finding.sentence,
            moment(start),
            moment(end)
        );
        finding.sentence = sentence.into();
        finding = finding.during(start..end);
    }
    finding.with(evidence)
}

/// Returns the words for a kind of damage, to follow a number.
fn words(kind: &str, number: u64) -> String {
    let (one, many) = match kind {
        "events_lost" => ("event lost", "events lost"),
        "buffers_lost" => ("buffer lost", "buffers lost"),
        "buffer_marks_lost_events" => (
            "buffer in which events were lost",
            "buffers in which events were lost",
        ),
        "buffer_marks_lost_buffers" => ("buffer after lost buffers", "buffers after lost buffers"),
        "loss_events" => ("event that reports a loss", "events that report a loss"),
        "missing_sequence_numbers" => ("missing buffer", "missing buffers"),
        "implausible_sequence" => (
            "buffer with a damaged sequence number",
            "buffers with damaged sequence numbers",
        ),
        "implausible_time" => ("event with a damaged time", "events with damaged times"),
        "clock_inversion" => (
            "buffer whose events are not in time order",
            "buffers whose events are not in time order",
        ),
        Damages::THROTTLED => (
            "time in which samples of an event were left out",
            "times in which samples of an event were left out",
        ),
        Damages::KILLED => (
            "recorder that was killed before it described the events and the machine",
            "recorders that were killed before they described the events and the machine",
        ),
        Damages::NO_DESCRIPTIONS => (
            "file whose end is missing, with the descriptions of events and the machine",
            "files whose ends are missing, with the descriptions of events and the machine",
        ),
        "out_of_order" => ("event not in time order", "events not in time order"),
        "unfinished" => ("unfinished session", "unfinished sessions"),
        "not_a_buffer" => (
            "place in the file without a buffer",
            "places in the file without a buffer",
        ),
        "unknown_record" | "record_too_small" | "record_too_large" => {
            ("buffer with a broken event", "buffers with broken events")
        }
        "truncated" => ("truncated buffer", "truncated buffers"),
        "ends_early" => ("early end of a file", "early ends of files"),
        "wrong_size" | "too_many_valid_bytes" => {
            ("buffer of the wrong size", "buffers of the wrong size")
        }
        "decompress" => (
            "buffer that cannot be decompressed",
            "buffers that cannot be decompressed",
        ),
        "io" => ("read error", "read errors"),
        "no_log_file_header" => ("missing log-file header", "missing log-file headers"),
        _ => return kind.replace('_', " "),
    };
    match number {
        1 => one,
        _ => many,
    }
    .to_owned()
}

/// Returns remedies for these kinds of damage. If `kinds` is empty, returns a remedy for
/// contradicting context switches.
fn remedies(kinds: &[&str], is_relogged: bool) -> Vec<String> {
    let mut remedies = Vec::new();
    let has = |kind: &str| kinds.contains(&kind);
    let is_broken = kinds
        .iter()
        .any(|kind| Effect::from_kind(kind).is_fault_of_file());
    if is_broken {
        remedies.push(
            "Copy the file again from the machine that recorded it and compare the sizes: it was \
             truncated or overwritten after it was recorded"
                .to_owned(),
        );
    }
    if has("unfinished") {
        remedies.push(
            "Stop the session before its file is copied (xperf -stop, wpr -stop, logman stop)"
                .to_owned(),
        );
    }
    let is_lost = kinds
        .iter()
        .any(|kind| Effect::from_kind(kind) == Effect::Lost);
    if is_lost || has("missing_sequence_numbers") && !is_broken {
        remedies.extend(record::needs::for_theory(ABOUT.id).map(|needs| format!("Record {needs}")));
    }
    if kinds.is_empty() {
        remedies.push(if is_relogged {
            "Use the original trace: a relogger wrote this file, apparently without some \
                     context switches"
                .to_owned()
        } else {
            "Record the context switches of all processes and CPUs, without a filter".to_owned()
        });
    }
    remedies
}

/// Returns remedies for these kinds of damage of a recording of Linux. If `kinds` is empty, returns none, because the
/// causes of contradicting switches are unknown.
fn linux_remedies(kinds: &[&str]) -> Vec<String> {
    let has = |kind: &str| kinds.contains(&kind);
    let mut remedies = Vec::new();
    if has("events_lost") {
        remedies.push(
            "Record again with larger buffers (perf record -m 16M, trace-cmd record -b 16384) or fewer events"
                .to_owned(),
        );
    }
    if has(Damages::THROTTLED) {
        remedies.push("Sample less often (perf record -F 99)".to_owned());
    }
    let is_broken = kinds
        .iter()
        .any(|kind| Effect::from_kind(kind).is_fault_of_file());
    if has(Damages::KILLED) {
        let stop = "Stop perf with Ctrl-C (SIGINT), so that it completes the file";
        remedies.push(stop.to_owned());
    } else if is_broken {
        let copy = "Copy the file again from the machine that recorded it, and stop the recording with Ctrl-C so that it \
            writes the end of the file";
        remedies.push(copy.to_owned());
    }
    remedies
}

/// Returns true if a session of the trace rewrote another trace.
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

    /// Returns the first two words of each remedy.
    fn first_words(kinds: &[&str], is_relogged: bool) -> Vec<String> {
        let remedies = remedies(kinds, is_relogged).into_iter();
        let words = remedies.map(|remedy| remedy.split(' ').take(2).collect::<Vec<_>>().join(" "));
        words.collect()
    }

    #[test]
    fn damage_has_words_for_one_and_for_many() {
        assert_eq!(words("missing_sequence_numbers", 1), "missing buffer");
        assert_eq!(words("missing_sequence_numbers", 2), "missing buffers");
        assert_eq!(words("events_lost", 1), "event lost");
        assert_eq!(
            words("buffer_marks_lost_events", 2),
            "buffers in which events were lost"
        );
        assert_eq!(words("truncated", 1), "truncated buffer");
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
        assert_eq!(first_words(&[], true), ["Use the"]);
        assert_eq!(first_words(&[], false), ["Record the"]);
    }

    #[test]
    fn a_killed_perf_is_to_be_stopped_and_a_cut_recording_to_be_copied() {
        let first = |kinds: &[&str]| linux_remedies(kinds).concat();
        assert!(first(&["killed", "unknown_record"]).starts_with("Stop perf with Ctrl-C"));
        for kind in ["unknown_record", "ends_early", "decompress"] {
            assert!(first(&[kind]).starts_with("Copy the file again"), "{kind}");
        }
        assert!(first(&["throttled"]).starts_with("Sample less often"));
        assert!(words("killed", 1).starts_with("recorder that was killed"));
    }
}
