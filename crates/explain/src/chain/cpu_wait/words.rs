//! Clauses about the cause of a wait, and remedies for it.

use super::weigh::Cause;
use super::{ExaminedWait, linux};
use crate::Case;
use crate::chain::held::By;
use crate::survey::cpu_names;
use crate::thresholds::{IDLE_EXIT_NS, PARTIAL_CAUSE_PERCENT, is_share};
use crate::{duration, listed, percent};

/// Returns the cause of a wait as a clause of a sentence.
pub(crate) fn because(case: &Case<'_>, argued: &ExaminedWait) -> String {
    let ExaminedWait {
        waiter,
        held,
        weighed,
        ..
    } = argued;
    let (its_cpus, its_time) = (&*waiter.cpus_in_words(), &*waiter.time_in_words());
    let its_cpus_were = match waiter.queue {
        Some(_) => format!("{its_cpus}, was"),
        None => format!("{its_cpus} were"),
    };
    let share = |by: By| match by {
        By::Suspended => percent(held.by(by), held.all_ns),
        _ => percent(held.by(by), held.awake_ns()),
    };
    let most = weighed.most.as_ref().map_or(String::new(), |most| {
        format!(
            ", mostly {} with {} of CPU time",
            case.processes(most.process_row, most.process_id),
            duration(most.ns)
        ) + &weighed.second.as_ref().map_or(String::new(), |second| {
            format!(
                ", then {} with {}",
                case.processes(second.process_row, second.process_id),
                duration(second.ns)
            )
        })
    });
    if !weighed.sampled_locks.is_empty() {
        return format!(
            "it waited for {}, which probably ran almost only DPCs and ISRs. They are not recorded, but samples show them",
            cpu_names(&weighed.sampled_locks)
        );
    }
    let clause = match weighed.cause {
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
                "its rank was {rank}, and {by} used {} of {its_time}{most}",
                share(By::Rank)
            )
        }
        Some(Cause::HigherPriority) if waiter.priority().is_none() => format!(
            "it was starved (Windows raised it to priority 15 at the end), and threads of higher \
             or equal priority used {} of {its_time}{most}",
            share(By::Unknown)
        ),
        Some(Cause::HigherPriority) => format!(
            "threads of higher priority used {} of {its_time}{most}",
            share(By::Priority)
        ),
        Some(Cause::EqualPriority) if case.is_linux() => {
            let most = if linux::is_mixed(argued) { "" } else { &most };
            linux::equals(waiter, &share(By::EqualPriority), its_time) + most
        }
        Some(Cause::Dispatcher) if case.is_linux() => {
            linux::lower(waiter, &share(By::Dispatcher), its_cpus) + &most
        }
        Some(Cause::EqualPriority) => format!(
            "threads of the same priority used {} of {its_time}, in turns{most}",
            share(By::EqualPriority)
        ),
        Some(Cause::Dispatcher) => format!(
            "{its_cpus} ran threads of lower precedence for {} of the time, but the dispatcher \
             looks only at the ideal processor",
            share(By::Dispatcher)
        ),
        Some(Cause::Interrupts) => {
            let terms = case.terms();
            let of_all = format!(
                "{} used {} and {} {} of {its_time}",
                terms.dpcs,
                share(By::Dpc),
                terms.isrs,
                share(By::Isr)
            );
            match weighed.locked_ideal {
                Some((cpu, ns)) => format!(
                    "it waited in the queue of its ideal processor, CPU {cpu}, which ran almost \
                     only DPCs and ISRs, for {} of the time ({of_all})",
                    percent(ns, waiter.ready_ns())
                ),
                None => of_all,
            }
        }
        Some(Cause::Affinity) => {
            let cpus = waiter.limited_to.as_deref().unwrap_or_default();
            let idle = weighed.idle_beyond_ns.unwrap_or(0);
            let kinds = [By::Priority, By::Rank, By::EqualPriority, By::Dispatcher];
            let threads_ns: i64 = kinds.into_iter().map(|by| held.by(by)).sum();
            let other_ns = threads_ns.saturating_add(held.by(By::Unknown));
            let used = match is_share(other_ns, held.awake_ns(), PARTIAL_CAUSE_PERCENT) {
                true => format!("which other threads used{most}"),
                false if weighed.has_interrupts => "where no other thread ran".to_owned(),
                false => "where no other thread ran; DPCs and ISRs are not recorded".to_owned(),
            };
            format!(
                "it may run only on {}, {used}, while another CPU was idle for {}",
                cpu_names(cpus),
                duration(idle)
            )
        }
        Some(Cause::Queue) => format!(
            "it waited in the queue of {}, which other threads used{most}, while another CPU was idle",
            waiter
                .queue
                .map_or("one CPU".to_owned(), |cpu| format!("CPU {cpu}"))
        ),
        Some(Cause::PagedOut) => "its kernel stack was paged out, or its process swapped out, and \
                                  had to be read from disk before it could run"
            .to_owned(),
        Some(Cause::Frozen) => "its process was frozen".to_owned(),
        Some(Cause::Suspended) => format!(
            "{} for {} of the time",
            case.survey.suspend_gaps.clause(),
            share(By::Suspended)
        ),
        Some(Cause::LostEvents) if !case.survey.clock_skews.is_empty() => {
            "this is doubtful, because the CPUs' clocks disagree: it may have run at once"
                .to_owned()
        }
        Some(Cause::LostEvents) if waiter.wait.is_none() => {
            "this is doubtful, because the trace probably lacks a later run of the thread"
                .to_owned()
        }
        Some(Cause::LostEvents) => {
            "this is doubtful, because the trace probably lacks the run that ended the wait"
                .to_owned()
        }
        None if weighed.is_idle_unexplained && waiter.ready_ns() < IDLE_EXIT_NS => format!(
            "{its_cpus_were} idle for {} of the time, and a CPU can need this long to leave an \
             idle state",
            share(By::Idle)
        ),
        None if weighed.is_idle_unexplained => format!(
            "no event explains it: {its_cpus_were} idle for {} of the time{}",
            share(By::Idle),
            unknown(case, argued)
        ),
        None if case.is_linux() => format!(
            "no recorded cause explains half of the wait. Threads of higher priority used {}, and threads of the \
             same priority {} of {its_time}. {} idle for {} of the time{}",
            share(By::Priority),
            share(By::EqualPriority),
            wording::capitalized(&its_cpus_were),
            share(By::Idle),
            unknown(case, argued)
        ),
        None if case.survey.runs_with_rank == 0 => format!(
            "no recorded cause explains half of the wait. Threads of higher priority used {}, and threads of the \
             same priority {} of {its_time}. {} were idle for {} of the time{}",
            share(By::Priority),
            share(By::EqualPriority),
            wording::capitalized(its_cpus),
            share(By::Idle),
            unknown(case, argued)
        ),
        None => format!(
            "no recorded cause explains half of the wait. Threads of better rank used {}, threads \
             of higher priority {}, and threads of the same priority {} of {its_time}. {} were \
             idle for {} of the time{}",
            share(By::Rank),
            share(By::Priority),
            share(By::EqualPriority),
            wording::capitalized(its_cpus),
            share(By::Idle),
            unknown(case, argued)
        ),
    };
    clause + &partly(argued, its_time)
}

/// Returns the end of a clause about a cause that consists of one kind of threads, for example threads of higher
/// priority. The end of the clause names the other kinds of threads that also used CPU time.
fn partly(argued: &ExaminedWait, its_time: &str) -> String {
    let of_kind = match argued.weighed.cause {
        Some(Cause::Rank) => By::Rank,
        Some(Cause::HigherPriority) => By::Priority,
        Some(Cause::EqualPriority) => By::EqualPriority,
        _ => return String::new(),
    };
    let held = &argued.held;
    let kinds = [
        (By::Priority, "higher priority"),
        (By::Rank, "better rank"),
        (By::EqualPriority, "the same priority"),
    ];
    let others = kinds.into_iter().filter(|(by, _)| {
        *by != of_kind && is_share(held.by(*by), held.awake_ns(), PARTIAL_CAUSE_PERCENT)
    });
    let others: Vec<String> = others
        .map(|(by, name)| {
            let share = percent(held.by(by), held.awake_ns());
            format!("threads of {name} used {share} of {its_time}")
        })
        .collect();
    if others.is_empty() {
        String::new()
    } else {
        format!("; {}", listed(others))
    }
}

/// Returns the data that is missing for an explanation, as the end of a clause.
fn unknown(case: &Case<'_>, argued: &ExaminedWait) -> &'static str {
    if !argued.waiter.affinity_is_known {
        "; the CPUs that it may use are not recorded"
    } else if !argued.weighed.has_interrupts && case.is_linux() {
        "; softirqs and interrupts are not recorded"
    } else if !argued.weighed.has_interrupts {
        "; DPCs and ISRs are not recorded"
    } else if case.survey.runs_with_rank == 0 && !case.is_linux() {
        "; ranks are not recorded"
    } else {
        ""
    }
}
