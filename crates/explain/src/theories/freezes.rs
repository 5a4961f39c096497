//! Theory: Windows, or a cgroup of Linux, froze processes.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Order, Selection};
use tables::{CpuRunsView, StoreError, Table, linux_states};

use crate::chain::freezes::{Freeze, read};
use crate::thread_state::READY;
use crate::thresholds::{DISRUPTIVE_NS, NOTICED_NS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, duration,
};

/// Theory about frozen processes.
pub(crate) struct Freezes;

static ABOUT: About = About {
    id: "frozen",
    name: "freezing",
    question: "Were processes frozen, so that none of their threads could run?",
    tables: &[Table::ProcessFreezes, Table::Focus, Table::CpuRuns],
    sources: &[Source {
        title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com; process freezing)",
        url: None,
    }],
};

static LINUX_SOURCE: Source = Source {
    title: "Linux kernel: Control Group v2, cgroup.freeze",
    url: Some("https://docs.kernel.org/admin-guide/cgroup-v2.html#core-interface-files"),
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Maximum time that the threads of a process need to enter a freeze, in nanoseconds.
const ENTERS_NS: i64 = 50_000_000;
/// Minimum CPU time of the last run of a thread that would have continued to run without a freeze, in nanoseconds. A
/// thread that only enters the freeze runs for a shorter time.
const LONG_NS: i64 = 1_000_000;
/// Codes of the wait reasons of suspended threads: `Suspended` and `WrSuspended`.
const SUSPENDED: [u8; 2] = [5, 12];

impl Theory for Freezes {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let freezes = read(case)?;
        if freezes.is_empty() {
            let what = "there are no freeze events: either no process was frozen, or such events \
                were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let focus = case.focus()?;
        let mut findings = Vec::new();
        for freeze in &freezes {
            let had_focus = focus
                .iter()
                .filter(|focus| focus.process_id == freeze.process_id)
                .map(|focus| focus.during.start.max(freeze.range.start)..focus.during.end)
                .find(|focus| focus.start < focus.end.min(freeze.range.end));
            findings.push(finding(case, freeze, had_focus.map(|focus| focus.start))?);
        }
        Ok(Outcome::For(findings))
    }
}

/// Describes a freeze of a process. `focus_ns` is the first time during the freeze at which the process had
/// the focus. It is `None` if the process did not have the focus.
fn finding(case: &Case<'_>, freeze: &Freeze, focus_ns: Option<i64>) -> Result<Finding, StoreError> {
    let Range { start, end } = freeze.range;
    let process = case.process(freeze.process_row, Some(freeze.process_id));
    let who = if case.is_linux() {
        "A cgroup's freezer"
    } else {
        "Windows"
    };
    let woken = woken_threads(case, freeze)?;
    // On Windows, an expired timer wakes threads of suspended apps, even if no user waits for them. So only a wake by
    // another thread shows that the process should have run. On Linux, an expired timer also shows this: the thread
    // wanted to run at this time.
    let wanted = woken.iter().find(|woken| !woken.by_dpc || case.is_linux());
    let running = if case.is_linux() {
        running_thread(case, freeze)?
    } else {
        None
    };
    let wanted_ns = [
        focus_ns,
        running.map(|_| start),
        wanted.map(|woken| woken.readied_ns.unwrap_or(woken.start_ns).max(start)),
    ];
    let wanted_ns = wanted_ns.into_iter().flatten().min();
    let silences = &case.survey.suspend_gaps;
    let delay_ns = wanted_ns.map_or(0, |since| end - since - silences.asleep_ns(&(since..end)));
    let severity = match delay_ns {
        DISRUPTIVE_NS.. => Severity::Problem,
        NOTICED_NS.. if case.is_linux() => Severity::Warning,
        _ => Severity::Information,
    };
    let until = if freeze.is_thawed {
        format!("thawed it at {}", duration(end))
    } else {
        "did not thaw it before the trace ended".to_owned()
    };
    let wanted = match (running, focus_ns, wanted) {
        (Some(thread), ..) => format!(" Its thread {thread} ran when it was frozen."),
        (None, Some(since), _) => format!(" It had the focus from {}.", duration(since)),
        (None, None, Some(woken)) => format!(
            " Its thread {} was woken at {} and suspended again.",
            woken.thread_id,
            duration(woken.start_ns)
        ),
        (None, None, None) => String::new(),
    };
    let slept = match silences.asleep_ns(&(start..end)) {
        0 => String::new(),
        ns => format!(
            " {} for {} of that.",
            wording::capitalized(silences.clause()),
            duration(ns)
        ),
    };
    let sentence = format!(
        "{who} froze {process} at {} and {until}: none of its threads could run for \
         {}.{wanted}{slept}",
        duration(start),
        duration(end - start),
    );
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(start..end)
        .subjects(case.process_subject(freeze.process_row, Some(freeze.process_id)))
        .subjects(woken.iter().take(SHOWN).map(|woken| Subject::Thread {
            id: woken.thread_id,
            row: None,
            process_row: freeze.process_row,
        }))
        .with(freeze.evidence(case))
        .with(woken_evidence(case, freeze, &woken));
    if case.is_linux() {
        finding.sources = vec![LINUX_SOURCE];
    }
    if !slept.is_empty() {
        finding = finding.with(silences.evidence(&(start..end)));
    }
    Ok(with_delay(
        finding,
        case,
        &process,
        delay_ns,
        !slept.is_empty(),
    ))
}

/// Adds the delay and its remedy, or a doubt if nothing shows a delay.
fn with_delay(
    finding: Finding,
    case: &Case<'_>,
    process: &str,
    delay_ns: i64,
    was_suspended: bool,
) -> Finding {
    let is_linux = case.is_linux();
    if delay_ns == 0 {
        return finding.doubt(if is_linux {
            "None of its threads wanted to run, as far as the recording shows. A freeze is a problem only if someone \
             waited for the process"
        } else {
            "Windows freezes packaged apps that are not visible. That is a problem only if a user \
             waited for one"
        });
    }
    let how = if was_suspended {
        format!(
            "of waiting for {process}, from the time when it had the focus or one of its threads was \
             woken (suspension excluded)"
        )
    } else if is_linux {
        format!("of {process}, counted from when one of its threads ran or was woken")
    } else {
        format!(
            "of waiting for {process}, from the time when it had the focus or one of its threads was woken"
        )
    };
    finding.delay(delay_ns, how).remedy(if is_linux {
        "Find the program that writes to cgroup.freeze of its cgroup (/proc/PID/cgroup): a container \
         engine (docker pause), systemd (systemctl freeze), or a manager of apps"
    } else {
        "Find out why Windows froze the program while it was needed: the Background Tasks \
         Infrastructure service decides this from the state of windows that the shell reports"
    })
}

/// Returns evidence with the threads that were woken during the freeze.
fn woken_evidence(case: &Case<'_>, freeze: &Freeze, woken: &[WakeRun]) -> Evidence {
    let Range { start, end } = freeze.range;
    let reasons = suspended_reasons(case);
    let selection = Selection::new(Table::CpuRuns)
        .within("end_ns", start.saturating_add(1)..end.saturating_add(1))
        .filter(Condition::is("process_id", freeze.process_id))
        .filter(Condition::is_one_of("wait_reason_out", reasons))
        .order(&[Order::ascending("end_ns"), Order::ascending("thread_id")])
        .limit(SHOWN);
    let title = "Threads that were woken during the freeze and suspended again";
    let mut evidence = Evidence::from_selection(title, selection)
        .stored("thread_id", "thread", Unit::None)
        .stored("readied_ns", "woken at", Unit::Moment)
        .stored("start_ns", "ran from", Unit::Moment)
        .stored("end_ns", "to", Unit::Moment);
    for woken in woken.iter().take(SHOWN) {
        evidence = evidence.row([
            Some(woken.thread_id.into()),
            woken.readied_ns.map(Into::into),
            Some(woken.start_ns.into()),
            Some(woken.end_ns.into()),
        ]);
    }
    evidence
}

/// Run of a thread during the freeze of its process. The run ended because the thread was suspended again.
struct WakeRun {
    thread_id: u32,
    readied_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
    /// True if a DPC woke the thread. An expired timer wakes threads by a DPC, even threads of a suspended app for
    /// which no user and no program waits.
    by_dpc: bool,
}

fn suspended_reasons(case: &Case<'_>) -> &'static [u8] {
    if case.is_linux() {
        // On Linux, frozen threads and threads in an interruptible wait have the same recorded state.
        &[linux_states::INTERRUPTIBLE]
    } else {
        &SUSPENDED
    }
}

/// Returns a thread of Linux that would have continued to run without the freeze. When Linux freezes a process, it
/// wakes the waiting threads of the process, and they wait again at once. The returned thread had a longer run before
/// the freeze, or was ready.
fn running_thread(case: &Case<'_>, freeze: &Freeze) -> Result<Option<u32>, StoreError> {
    const COLUMNS: [&str; 7] = [
        "start_ns",
        "end_ns",
        "cpu_ns",
        "thread_id",
        "process_id",
        "previous_state",
        "wait_reason_out",
    ];
    let start = freeze.range.start;
    let from = start.saturating_sub(ENTERS_NS);
    let runs = case.table(Table::CpuRuns)?;
    let mut last: FxHashMap<u32, (i64, bool)> = FxHashMap::default();
    for batch in case.batches(&runs, from..start.saturating_add(1), &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let end_ns = view.end_ns[row];
            if view.process_id.get(row) != Some(freeze.process_id)
                || !(from..=start).contains(&end_ns)
            {
                continue;
            }
            let was_ready = view.previous_state.get(row) == Some(READY);
            let is_frozen = view.wait_reason_out.get(row) == Some(linux_states::INTERRUPTIBLE);
            let ran_on = is_frozen && (was_ready || view.cpu_ns[row] >= LONG_NS);
            let run = last.entry(view.thread_id[row]).or_insert((end_ns, ran_on));
            if run.0 <= end_ns {
                *run = (end_ns, ran_on);
            }
        }
    }
    let ran_on = last.into_iter().filter(|(_, (_, ran_on))| *ran_on);
    Ok(ran_on.map(|(thread, _)| thread).min())
}

fn woken_threads(case: &Case<'_>, freeze: &Freeze) -> Result<Vec<WakeRun>, StoreError> {
    const COLUMNS: [&str; 7] = [
        "readied_by_dpc",
        "start_ns",
        "end_ns",
        "thread_id",
        "process_id",
        "readied_ns",
        "wait_reason_out",
    ];
    let Range { start, end } = freeze.range;
    let reasons = suspended_reasons(case);
    let runs = case.table(Table::CpuRuns)?;
    let mut wake_runs = Vec::new();
    for batch in case.batches(&runs, start..end.saturating_add(1), &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let is_suspended = view
                .wait_reason_out
                .get(row)
                .is_some_and(|reason| reasons.contains(&reason));
            if is_suspended
                && view.process_id.get(row) == Some(freeze.process_id)
                && start < view.end_ns[row]
                && view.end_ns[row] <= end
            {
                wake_runs.push(WakeRun {
                    thread_id: view.thread_id[row],
                    readied_ns: view.readied_ns.get(row),
                    start_ns: view.start_ns[row],
                    end_ns: view.end_ns[row],
                    // Without ready events, it is unknown what woke the thread. Then it counts as a timer.
                    by_dpc: view.readied_by_dpc.get(row) != Some(false),
                });
            }
        }
    }
    wake_runs.sort_by_key(|woken| (woken.end_ns, woken.thread_id));
    Ok(wake_runs)
}
