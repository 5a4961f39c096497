//! What is said of a wait, in words.

use super::Argued;
use super::held::By;
use super::weigh::{Cause, LONGEST_WAKE_NS};
use crate::{Case, counted, duration, grouped, percent};

/// Who waited how long, and why.
pub(super) fn sentence(case: &Case<'_>, group: &[Argued]) -> String {
    let worst = &group[0];
    let waiter = &worst.waiter;
    let name = waiter
        .thread_row
        .and_then(|row| case.names.thread_name(row));
    let name = name.map_or(String::new(), |name| format!(" (“{name}”)"));
    let priority = match waiter.priority() {
        Some(priority) => format!(", priority {priority},"),
        None => String::new(),
    };
    // What is short is told apart by microseconds.
    let moment = |ns: i64| match waiter.ready_ns() {
        ..10_000_000 => format!("{:.6} s", ns as f64 / 1e9),
        _ => moment(ns),
    };
    let until = match waiter.wait {
        Some(_) => format!(
            "{} to {}",
            moment(waiter.range.start),
            moment(waiter.range.end)
        ),
        None => format!(
            "since {}, and still when the trace ends",
            moment(waiter.range.start)
        ),
    };
    let mut sentence = format!(
        "Thread {}{name} of {}{priority} was ready for {} ({until}) and got no CPU: {}.",
        waiter.thread_id,
        case.process(waiter.process_row, waiter.process_id),
        duration(waiter.ready_ns()),
        because(case, worst),
    );
    if group.len() > 1 {
        sentence.push_str(&format!(
            " {} of {}.",
            counted(group.len() as u64 - 1, "more such wait", "more such waits"),
            match (waiter.process_row, waiter.process_id) {
                (None, None) => "threads whose processes are unknown",
                _ => "that process",
            }
        ));
    }
    sentence
}

/// A moment, in seconds.
pub(super) fn moment(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Why, in half a sentence.
fn because(case: &Case<'_>, argued: &Argued) -> String {
    let Argued {
        waiter,
        held,
        weighed,
        ..
    } = argued;
    let its_cpus = match &waiter.limited_to {
        None => "the CPUs",
        Some(_) => "the CPUs that it may use",
    };
    let share = |by: By| percent(held.by(by), held.all_ns);
    let most = weighed
        .most
        .as_ref()
        .map_or(String::new(), |(process, ns)| {
            format!(", most of all {process} with {} of CPU time", duration(*ns))
        });
    match weighed.cause {
        Some(Cause::Rank) => {
            let rank = waiter.rank.unwrap_or(0);
            let by = held.outranked_by.map_or(String::new(), |by| {
                let ranks = match by.ranks {
                    (a, b) if a == b => format!("rank {a}"),
                    (a, b) => format!("ranks {a} to {b}"),
                };
                let priorities = match by.priorities {
                    (a, b) if a == b => format!("priority {a}"),
                    (a, b) => format!("priorities {a} to {b}"),
                };
                format!("threads of {ranks} with {priorities}")
            });
            format!(
                "its rank was {rank}, and {by} had {} of {its_cpus} meanwhile{most}",
                share(By::Rank)
            )
        }
        Some(Cause::HigherPriority) => format!(
            "threads of higher priority had {} of {its_cpus} meanwhile{most}",
            share(By::Priority)
        ),
        Some(Cause::EqualPriority) => format!(
            "threads of the same priority had {} of {its_cpus} meanwhile, each for its quantum{most}",
            share(By::EqualPriority)
        ),
        Some(Cause::Dispatcher)
            if waiter.ready_ns() < LONGEST_WAKE_NS && 2 * held.by(By::Idle) >= held.all_ns =>
        {
            format!(
                "{its_cpus} were idle for {} of the time, and one takes so long to leave its idle state",
                share(By::Idle)
            )
        }
        Some(Cause::Dispatcher) => format!(
            "though {its_cpus} were idle for {} of the time and had threads that go behind it for \
             {}, the dispatcher did not give it one: it looks at the ideal processor only",
            share(By::Idle),
            share(By::Dispatcher)
        ),
        Some(Cause::Interrupts) => format!(
            "DPCs had {} and service routines {} of {its_cpus} meanwhile",
            share(By::Dpc),
            share(By::Isr)
        ),
        Some(Cause::Affinity) => {
            let cpus = waiter.limited_to.as_deref().unwrap_or_default();
            let list: Vec<String> = cpus.iter().map(u16::to_string).collect();
            let idle = weighed.idle_beyond_ns.unwrap_or(0);
            format!(
                "it may run on CPU {} only, which others had{most}, while another CPU was idle for {}",
                list.join(", "),
                duration(idle)
            )
        }
        Some(Cause::PagedOut) => "its kernel stack was paged out, or its process swapped out, and \
                                  had to be read from disk before it could run"
            .to_owned(),
        Some(Cause::Frozen) => "its process was frozen".to_owned(),
        Some(Cause::Suspended) => format!(
            "the machine was suspended for {} of the time",
            share(By::Suspended)
        ),
        Some(Cause::LostEvents) if !case.survey.clock_skews.is_empty() => {
            "but the processors' clocks disagree: it may well have run at once".to_owned()
        }
        Some(Cause::LostEvents) => {
            "but the trace likely lacks the run that ended it: it may well have run unseen"
                .to_owned()
        }
        None => format!(
            "nothing that is recorded explains half of it; threads of better rank had {}, of higher \
             priority {}, of the same priority {} of {its_cpus}, which were idle for {}{}",
            share(By::Rank),
            share(By::Priority),
            share(By::EqualPriority),
            share(By::Idle),
            if !waiter.affinity_is_known {
                "; which CPUs it may use is not recorded"
            } else if weighed.is_idle_unexplained {
                "; DPCs and service routines are not recorded"
            } else if case.survey.runs_with_rank == 0 {
                "; ranks are not recorded"
            } else {
                ""
            }
        ),
    }
}

/// Who lost the time, and how it was reckoned.
pub(super) fn cost(case: &Case<'_>, group: &[Argued]) -> String {
    let waiter = &group[0].waiter;
    let process = case.process(waiter.process_row, waiter.process_id);
    let waits = match group.len() {
        1 => "the wait".to_owned(),
        n => format!(
            "{} waits, those at one time counted once",
            grouped(n as u64)
        ),
    };
    format!(
        "in which {process} could have gone on: {waits}, without time that the machine was suspended"
    )
}

/// What to do about it.
pub(super) fn remedies(argued: &Argued, process: &str) -> Vec<String> {
    let most = argued.weighed.most.as_ref();
    let who = most.map_or("what ran instead".to_owned(), |(who, _)| who.clone());
    let mut remedies = Vec::new();
    if argued.waiter.process_row.is_none() && argued.waiter.process_id.is_none() {
        remedies.push(
            "Record processes and threads too (xperf -on PROC_THREAD, WPR keyword ProcessThread): \
             whose threads these are is not in the trace."
                .to_owned(),
        );
        return remedies;
    }
    match argued.weighed.cause {
        Some(Cause::Rank) => {
            remedies.push(format!(
                "Have less work compete for the CPUs ({who} had most): a thread with a rank runs as \
                 soon as no thread of rank 0 is ready."
            ));
            if process.to_lowercase().starts_with("lockapp.exe") {
                remedies.push(
                    "Turn the lock screen off (NoLockScreen = 1 in \
                     HKLM\\SOFTWARE\\Policies\\Microsoft\\Windows\\Personalization): then logging on \
                     does not wait for LockApp.exe. From Windows 10 1607 on only the editions \
                     Enterprise, Education and Server heed it."
                        .to_owned(),
                );
            }
        }
        Some(Cause::HigherPriority) => remedies.push(format!(
            "Lower the priority of {who}, or let it use fewer threads: then {process} gets its turn. \
             If somebody waits for {process}, start it in a higher priority class."
        )),
        Some(Cause::EqualPriority) => remedies.push(format!(
            "Let {who} use fewer threads than there are CPUs, or run it in a lower priority class: \
             then {process} need not wait for quanta to end."
        )),
        Some(Cause::Interrupts) => remedies.push(
            "Find the driver whose DPCs and service routines had the CPUs (laglab dpcisr), and \
             update it, or spread its interrupts over more CPUs."
                .to_owned(),
        ),
        Some(Cause::Affinity) => remedies.push(format!(
            "Let {process} run on every CPU: take its affinity off. A pinned thread waits for its \
             CPU however idle the others are."
        )),
        Some(Cause::PagedOut) => remedies.push(
            "Use less memory or add some, and put the page file on a faster disk; the flag 0x80000 \
             in GlobalFlag of HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager keeps kernel \
             stacks in memory."
                .to_owned(),
        ),
        Some(Cause::LostEvents) => remedies.push(
            "See what is said of the capture: record again what was lost, or copy again what is \
             broken."
                .to_owned(),
        ),
        Some(Cause::Suspended | Cause::Frozen | Cause::Dispatcher) | None => {}
    }
    remedies
}

/// What is uncertain.
pub(super) fn doubts(case: &Case<'_>, argued: &Argued) -> Vec<String> {
    let mut doubts = Vec::new();
    let waiter = &argued.waiter;
    if argued.weighed.cause == Some(Cause::Rank) {
        doubts.push(
            "A trace tells a thread's rank only when it leaves its CPU: that of the wait is taken \
             from the ends of the runs before and after it, the worse one. Why Windows gave it that \
             rank is not recorded."
                .to_owned(),
        );
    }
    if waiter.ran_unseen {
        doubts.push("The wait may have been shorter, or several: switches are missing.".to_owned());
    }
    if case.survey.interrupts.routines.is_empty() {
        doubts.push(
            "DPCs and service routines are not recorded: what they had of the CPUs counts as that of \
             the threads which they interrupted, or as idle."
                .to_owned(),
        );
    }
    if !case.survey.has_ready_events {
        doubts.push(
            "Without events of threads made ready, only waits of threads that lost their CPU are \
             known."
                .to_owned(),
        );
    }
    doubts
}
