//! Theory: a signal, a debugger or a freezer stopped processes of Linux.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashSet;
use selection::{Condition, Expression, Order, Selection};
use tables::{Identities, StoreError, Table, linux_states};

use crate::chain::user_attention::is_asked;
use crate::ranges::union;
use crate::thresholds::{DISRUPTIVE_NS, NOTICED_NS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, ThreadWaits, Unit,
    Wait, counted, duration, labels, listed, moment,
};

/// Theory about stopped processes.
pub(crate) struct Stopped;

static ABOUT: About = About {
    id: "stopped",
    name: "stop signals, debuggers and freezers",
    question: "Did a signal, a debugger or a freezer stop a program?",
    tables: &[Table::CpuRuns, Table::ReadyThreads],
    sources: &[Source {
        title: "Linux manual: signal(7), SIGSTOP; ptrace(2)",
        url: Some("https://man7.org/linux/man-pages/man7/signal.7.html"),
    }],
};

/// States of a thread that a signal or a debugger stopped.
const STATES: [u8; 2] = [linux_states::STOPPED, linux_states::TRACED];
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

impl Theory for Stopped {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            let why = "the recording has no context switches";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
        let mut processes: Vec<Stops<'_>> = Vec::new();
        for thread in &case.survey.threads {
            if !is_asked(&case.scope, &scope_rows, thread) {
                continue;
            }
            for stop in Stop::find(case, thread) {
                let same = |stops: &&mut Stops<'_>| {
                    let first = &stops.0[0];
                    (
                        first.state,
                        first.thread.process_row,
                        first.thread.process_id,
                    ) == (stop.state, thread.process_row, thread.process_id)
                };
                match processes.iter_mut().find(same) {
                    Some(stops) => stops.0.push(stop),
                    None => processes.push(Stops(vec![stop])),
                }
            }
        }
        if processes.is_empty() {
            let because = format!(
                "no thread was stopped by a signal, a debugger or a freezer for {} or longer",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        processes.sort_by_key(|stops| Reverse(stops.delay_ns()));
        processes.truncate(FINDINGS);
        Ok(Outcome::For(
            processes.iter().map(|stops| stops.finding(case)).collect(),
        ))
    }
}

/// Time range in which a thread was stopped.
struct Stop<'c> {
    thread: &'c ThreadWaits,
    state: u8,
    range: Range<i64>,
    /// Run after the stop; `None` if the thread was still stopped when the recording ended.
    wait: Option<&'c Wait>,
}

/// Returns true if a thread of a program waited in the kernel (state D) until another program let it go on. The freezer
/// of cgroups of version 1 logs no events, but its waits end in this way. Waits for disks and other devices do not
/// count: interrupts or threads of the kernel end them. Waits that a child of the program ends do not count either: a
/// program that starts another one with `vfork` waits for its child.
fn is_held(names: &Identities, wait: &Wait) -> bool {
    let both = wait.process_row.zip(wait.readying_process_row);
    wait.readied_by_dpc == Some(false)
        && both.is_some_and(|(own, by)| {
            let id = |row| names.process(Some(row), None).id;
            let is_kernel = names.is_kernel_thread(own) || names.is_kernel_thread(by);
            let is_child = id(own) == names.parent_id(by);
            id(own) != id(by) && !is_child && id(by) != Some(0) && !is_kernel
        })
}

impl<'c> Stop<'c> {
    fn find(case: &Case<'_>, thread: &'c ThreadWaits) -> Vec<Stop<'c>> {
        let ended = thread.blocks.iter().filter_map(|wait| {
            let state = wait.previous_wait_reason.filter(|state| {
                STATES.contains(state)
                    || *state == linux_states::UNINTERRUPTIBLE && is_held(&case.names, wait)
            })?;
            let since = wait.previous_out_ns?;
            Some(Stop {
                thread,
                state,
                range: since..since.saturating_add(wait.waits_ns?),
                wait: Some(wait),
            })
        });
        let open = thread.blocked_since.and_then(|(since, state, _)| {
            STATES.contains(&state).then_some(Stop {
                thread,
                state,
                range: since..case.survey.span.end,
                wait: None,
            })
        });
        let all = ended.chain(open);
        all.filter(|stop| stop.range.end - stop.range.start >= NOTICED_NS)
            .collect()
    }
}

/// Stops of the threads of a process in the same state.
struct Stops<'c>(Vec<Stop<'c>>);

impl Stops<'_> {
    fn ranges(&self) -> Vec<Range<i64>> {
        union(self.0.iter().map(|stop| stop.range.clone()).collect())
    }

    fn delay_ns(&self) -> i64 {
        let ranges = self.ranges();
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let stops = &self.0;
        let (state, thread) = (stops[0].state, stops[0].thread);
        let process = case.process(thread.process_row, thread.process_id);
        let ranges = self.ranges();
        let delay_ns = self.delay_ns();
        let threads: FxHashSet<u32> = stops.iter().map(|stop| stop.thread.thread_id).collect();
        let (by, remedy) = match state {
            linux_states::TRACED => (
                "a debugger (ptrace)",
                "Find the program that traces it (TracerPid in /proc/PID/status): gdb, strace or a \
                 profiler",
            ),
            linux_states::UNINTERRUPTIBLE => (
                "another program, in the kernel (state D): a freezer of cgroups of version 1, or a lock of the kernel",
                "Find the program that writes to freezer.state of its cgroup (the line freezer in /proc/PID/cgroup), such \
                 as docker pause; if the cause is a lock, /proc/PID/stack shows the place",
            ),
            _ => (
                "a signal (SIGSTOP, or SIGTSTP, SIGTTIN or SIGTTOU of a terminal)",
                "Find the program or user that sends the signal: record signal:signal_generate, which names \
                 the sender",
            ),
        };
        let is_open = stops.iter().any(|stop| stop.wait.is_none());
        let times = match ranges.as_slice() {
            [range] if is_open => format!(
                "from {}, and still when the recording ended",
                moment(range.start)
            ),
            [range] => format!("{} to {}", moment(range.start), moment(range.end)),
            many => counted(many.len() as u64, "time", "times"),
        };
        let sentence = format!(
            "{} of {process} {} stopped for {} ({times}) by {by}.",
            wording::capitalized(&counted(threads.len() as u64, "thread", "threads")),
            if threads.len() == 1 { "was" } else { "were" },
            duration(delay_ns),
        );
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let mut sorted: Vec<&Stop<'_>> = stops.iter().collect();
        sorted.sort_by_key(|stop| stop.thread.thread_id);
        let during = ranges[0].start..ranges[ranges.len() - 1].end;
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects(sorted.iter().map(|stop| Subject::Thread {
                id: stop.thread.thread_id,
                row: stop.thread.thread_row,
                process_row: stop.thread.process_row,
            }))
            .subjects(case.process_subject(thread.process_row, thread.process_id))
            .during(during)
            .delay(delay_ns, format!("of {process}, overlaps counted once"))
            .remedy(remedy);
        let mut continued: Vec<String> = Vec::new();
        for wait in stops.iter().filter_map(|stop| stop.wait) {
            if wait.readied_by_dpc == Some(false) {
                let name = case.process(wait.readying_process_row, wait.readying_process_id);
                if !continued.contains(&name) {
                    continued.push(name);
                }
            }
        }
        continued.truncate(SHOWN);
        let finding = if continued.is_empty() {
            finding
        } else {
            finding.because(format!("{} let it continue.", listed(continued)))
        };
        if is_open {
            finding.with(open(stops))
        } else {
            finding.with(ended(case, stops, thread))
        }
    }
}

/// Returns evidence with the runs after the stops of a process, the longest stop first.
fn ended(case: &Case<'_>, stops: &[Stop<'_>], thread: &ThreadWaits) -> Evidence {
    let during = case.scope.during.clone().unwrap_or(i64::MIN..i64::MAX);
    let selection = Selection::new(Table::CpuRuns)
        .filter(Condition::of_process(thread.process_row, thread.process_id))
        .filter(Condition::is("previous_wait_reason", stops[0].state))
        .filter(Condition::AtLeast("waits_ns", NOTICED_NS))
        .filter(Condition::IsTrue("ran_unseen").negated())
        .filter(Condition::Below("previous_out_ns", during.end))
        .filter(Condition::AtLeast(
            "start_ns",
            during.start.saturating_add(1),
        ))
        .order(&[
            Order::descending("waits_ns"),
            Order::ascending("start_ns"),
            Order::ascending("thread_id"),
        ])
        .limit(SHOWN);
    let evidence = Evidence::from_selection("Runs after the stops", selection)
        .stored("thread_id", "thread", Unit::None)
        .stored("previous_out_ns", "stopped at", Unit::Moment)
        .stored("waits_ns", "for", Unit::Duration)
        .stored("start_ns", "ran at", Unit::Moment)
        .column(
            "continued_by",
            "continued by",
            Unit::None,
            Expression::Process("readying_process_row"),
        );
    let mut waits: Vec<&Wait> = stops.iter().filter_map(|stop| stop.wait).collect();
    waits.sort_by_key(|wait| (Reverse(wait.waits_ns), wait.start_ns, wait.thread_id));
    let shown = waits.into_iter().take(SHOWN);
    shown.fold(evidence, |evidence, wait| {
        evidence.row([
            Some(wait.thread_id.into()),
            wait.previous_out_ns.map(Into::into),
            wait.waits_ns.map(Into::into),
            Some(wait.start_ns.into()),
            case.process_label(wait.readying_process_row)
                .map(Into::into),
        ])
    })
}

/// Returns evidence with the last runs of threads that were still stopped when the recording ended.
fn open(stops: &[Stop<'_>]) -> Evidence {
    let mut last: Vec<(i64, u32)> = (stops.iter().filter(|stop| stop.wait.is_none()))
        .map(|stop| (stop.range.start, stop.thread.thread_id))
        .collect();
    last.sort_unstable();
    last.truncate(SHOWN);
    let threads: Vec<u32> = last.iter().map(|(_, thread)| *thread).collect();
    let since: Vec<i64> = last.iter().map(|(since, _)| *since).collect();
    let selection = Selection::new(Table::CpuRuns)
        .filter(Condition::is_one_of("thread_id", &threads))
        .filter(Condition::is_one_of("end_ns", &since))
        .order(&[Order::ascending("end_ns"), Order::ascending("thread_id")]);
    let state = Expression::WaitReason("wait_reason_out");
    let title = "Last runs before stops that last until the recording ends";
    let evidence = Evidence::from_selection(title, selection)
        .stored("thread_id", "thread", Unit::None)
        .stored("end_ns", "stopped at", Unit::Moment)
        .column("state", "state", Unit::None, state);
    last.into_iter()
        .fold(evidence, |evidence, (since, thread)| {
            evidence.row([
                Some(thread.into()),
                Some(since.into()),
                Some(labels::wait_reason(stops[0].state).into()),
            ])
        })
}
