//! Theory: threads of Linux woke up late because their timers may expire late (timer slack).

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Selection};
use tables::{SlackTimersView, StoreError, Table};

use crate::ranges::union;
use crate::thresholds::NOTICED_NS;
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration,
};

/// Theory about the slack of timers.
pub(crate) struct TimerSlack;

static ABOUT: About = About {
    id: "timer-slack",
    name: "timer slack",
    question: "Did threads sleep longer than intended because their timers have slack?",
    tables: &[Table::SlackTimers],
    sources: &[Source {
        title: "Linux manual: PR_SET_TIMERSLACK(2const)",
        url: Some("https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html"),
    }],
};

/// Smallest slack that counts, in nanoseconds. By default, a thread has 50 µs.
const SLACK_NS: i64 = 1_000_000;
/// Length of a sleep, divided by the minimum lateness that counts: a sleep must be late by a twentieth of its length.
/// Less is normal, because the kernel gives long waits with a time-out (`poll`) a slack of up to 0.5 % of their length.
const PARTS: i64 = 20;
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of threads that a finding names.
const THREADS: usize = 12;

impl Theory for TimerSlack {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let (mut processes, timers) = read(case)?;
        if timers == 0 {
            let why = "the starts of timers are not recorded";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        processes.retain(|process| process.delay_ns() >= NOTICED_NS);
        if processes.is_empty() {
            let because = format!(
                "no slack of {} or more made the threads of a process late by {} or longer in total",
                duration(SLACK_NS),
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        processes.sort_by_key(|process| Reverse(process.delay_ns()));
        processes.truncate(FINDINGS);
        Ok(Outcome::For(
            processes
                .iter()
                .map(|process| process.finding(case))
                .collect(),
        ))
    }
}

/// Row and id of a process, as far as they are known.
type ProcessKey = (Option<u32>, Option<u32>);

/// Late timers of the threads of a process.
#[derive(Default)]
struct Late {
    process: ProcessKey,
    /// Time ranges from when the timers were due to when they expired.
    ranges: Vec<Range<i64>>,
    threads: Vec<u32>,
    late_ns: i64,
    longest_ns: i64,
    slack_ns: i64,
}

/// Returns the late timers by process, and the number of all timers.
fn read(case: &Case<'_>) -> Result<(Vec<Late>, usize), StoreError> {
    let mut by_process: FxHashMap<ProcessKey, Late> = FxHashMap::default();
    let mut timers = 0;
    let table = case.table(Table::SlackTimers)?;
    let columns = [
        "time_ns",
        "start_ns",
        "thread_id",
        "process_id",
        "process_row",
        "slack_ns",
        "late_ns",
    ];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SlackTimersView::new(&batch)?;
        timers += view.len();
        for row in 0..view.len() {
            let (time_ns, slack_ns, late_ns) =
                (view.time_ns[row], view.slack_ns[row], view.late_ns[row]);
            let length_ns = time_ns.saturating_sub(view.start_ns[row]);
            if slack_ns < SLACK_NS || late_ns.saturating_mul(PARTS) < length_ns {
                continue;
            }
            let process = (view.process_row.get(row), view.process_id.get(row));
            let late = by_process.entry(process).or_insert_with(|| Late {
                process,
                ..Late::default()
            });
            late.ranges.push(time_ns.saturating_sub(late_ns)..time_ns);
            late.threads.push(view.thread_id[row]);
            late.late_ns = late.late_ns.saturating_add(late_ns);
            late.longest_ns = late.longest_ns.max(late_ns);
            late.slack_ns = late.slack_ns.max(slack_ns);
        }
    }
    Ok((by_process.into_values().collect(), timers))
}

impl Late {
    fn delay_ns(&self) -> i64 {
        let ranges = union(self.ranges.clone());
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let (row, id) = self.process;
        let process = case.process(row, id);
        let (delay_ns, times) = (self.delay_ns(), self.ranges.len() as u64);
        let mut threads = self.threads.clone();
        threads.sort_unstable();
        threads.dedup();
        let sentence = format!(
            "Timers of {process} expired late {}, for {} in total and {} at most: its threads allow the kernel to delay \
             them by up to {} (timer slack).",
            counted(times, "time", "times"),
            duration(self.late_ns),
            duration(self.longest_ns),
            duration(self.slack_ns),
        );
        let start = self.ranges.iter().map(|range| range.start).min();
        let end = self.ranges.iter().map(|range| range.end).max();
        Finding::new(&ABOUT, Severity::Warning, sentence)
            .subjects(threads.iter().take(THREADS).map(|id| Subject::Thread {
                id: *id,
                row: None,
                process_row: row,
            }))
            .subjects(case.process_subject(row, id))
            .during(start.unwrap_or(0)..end.unwrap_or(0))
            .delay(delay_ns, format!("of {process}, overlaps counted once"))
            .remedy(
                "Give its threads a smaller slack: prctl(PR_SET_TIMERSLACK), /proc/PID/timerslack_ns, or TimerSlackNSec of \
                 the systemd unit. Real-time threads have none",
            )
            .with(self.evidence())
    }

    fn evidence(&self) -> Evidence {
        let (row, id) = self.process;
        let selection = Selection::new(Table::SlackTimers)
            .computed(
                "beyond_ns",
                format!("late_ns * {PARTS} - (time_ns - start_ns)"),
            )
            .filter(Condition::of_process(row, id))
            .filter(Condition::AtLeast("slack_ns", SLACK_NS))
            .filter(Condition::AtLeast("beyond_ns", 0));
        Evidence::from_selection("Its late timers", selection)
            .column("timers", "times", Unit::Count, Expression::Count)
            .column(
                "late_sum_ns",
                "late",
                Unit::Duration,
                Expression::Sum("late_ns"),
            )
            .column(
                "longest_ns",
                "longest",
                Unit::Duration,
                Expression::Max("late_ns"),
            )
            .column(
                "most_ns",
                "slack",
                Unit::Duration,
                Expression::Max("slack_ns"),
            )
            .row([
                Some((self.ranges.len() as u64).into()),
                Some(self.late_ns.into()),
                Some(self.longest_ns.into()),
                Some(self.slack_ns.into()),
            ])
    }
}
