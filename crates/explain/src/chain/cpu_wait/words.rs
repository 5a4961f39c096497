//! Clauses about the cause of a wait.

use super::weigh::Cause;
use super::{ExaminedWait, linux};
use crate::Case;
use crate::chain::holder_times::{Holder, Most};
use crate::survey::cpu_names;
use crate::thresholds::{IDLE_EXIT_NS, PARTIAL_CAUSE_PERCENT, is_share};
use crate::{duration, listed, percent};

/// Returns the cause of a wait as a clause of a sentence.
pub(crate) fn because(case: &Case<'_>, wait: &ExaminedWait) -> String {
    let locks = &wait.weighed.sampled_locks;
    if !locks.is_empty() {
        return format!(
            "it waited for {}, which probably ran almost only DPCs and ISRs. They are not recorded, but samples show them",
            cpu_names(locks)
        );
    }
    let words = Words {
        case,
        wait,
        its_cpus: wait.waiter.cpus_in_words(),
        its_time: wait.waiter.time_in_words(),
    };
    let clause = match wait.weighed.cause {
        Some(cause) => words.cause(cause),
        None => words.no_cause(),
    };
    clause + &partly(wait, &words.its_time)
}

/// Words about a wait.
struct Words<'w, 'c> {
    case: &'w Case<'c>,
    wait: &'w ExaminedWait,
    its_cpus: String,
    its_time: String,
}

impl Words<'_, '_> {
    fn share(&self, by: Holder) -> String {
        let times = &self.wait.times;
        match by {
            Holder::Suspended => percent(times.by(by), times.all_ns),
            _ => percent(times.by(by), times.awake_ns()),
        }
    }

    /// Returns a clause about the processes with most CPU time during the wait.
    fn most(&self) -> String {
        let weighed = &self.wait.weighed;
        let process = |most: &Most| self.case.processes(most.process_row, most.process_id);
        let Some(most) = &weighed.most else {
            return String::new();
        };
        let (who, time) = (process(most), duration(most.ns));
        let mut clause = format!(", mostly {who} with {time} of CPU time");
        if let Some(second) = &weighed.second {
            clause += &format!(", then {} with {}", process(second), duration(second.ns));
        }
        clause
    }

    fn cause(&self, cause: Cause) -> String {
        let (its_cpus, its_time) = (&*self.its_cpus, &*self.its_time);
        let (waiter, most) = (&self.wait.waiter, self.most());
        let is_linux = self.case.is_linux();
        match cause {
            Cause::Rank => self.rank(),
            Cause::HigherPriority if waiter.priority().is_none() => format!(
                "it was starved (Windows raised it to priority 15 at the end), and threads of higher \
                 or equal priority used {} of {its_time}{most}",
                self.share(Holder::Unknown)
            ),
            Cause::HigherPriority => format!(
                "threads of higher priority used {} of {its_time}{most}",
                self.share(Holder::Priority)
            ),
            Cause::EqualPriority if is_linux => {
                let most = if linux::is_mixed(self.wait) {
                    ""
                } else {
                    &most
                };
                linux::equals(waiter, &self.share(Holder::EqualPriority), its_time) + most
            }
            Cause::EqualPriority => format!(
                "threads of the same priority used {} of {its_time}, in turns{most}",
                self.share(Holder::EqualPriority)
            ),
            Cause::Dispatcher if is_linux => {
                linux::lower(waiter, &self.share(Holder::Dispatcher), its_cpus) + &most
            }
            Cause::Dispatcher => format!(
                "{its_cpus} ran threads of lower precedence for {} of the time, but the dispatcher \
                 looks only at the ideal processor",
                self.share(Holder::Dispatcher)
            ),
            Cause::Interrupts => self.interrupts(),
            Cause::Affinity => self.affinity(),
            Cause::Queue => format!(
                "it waited in the queue of {}, which other threads used{most}, while another CPU was idle",
                waiter
                    .queue
                    .map_or("one CPU".to_owned(), |cpu| format!("CPU {cpu}"))
            ),
            Cause::PagedOut => "its kernel stack was paged out, or its process swapped out, and \
                                had to be read from disk before it could run"
                .to_owned(),
            Cause::Frozen => "its process was frozen".to_owned(),
            Cause::Suspended => format!(
                "{} for {} of the time",
                self.case.survey.suspend_gaps.clause(),
                self.share(Holder::Suspended)
            ),
            Cause::LostEvents => {
                let why = if !self.case.survey.clock_skews.is_empty() {
                    "the CPUs' clocks disagree: it may have run at once"
                } else if waiter.wait.is_none() {
                    "the trace probably lacks a later run of the thread"
                } else {
                    "the trace probably lacks the run that ended the wait"
                };
                format!("this is doubtful, because {why}")
            }
        }
    }

    fn rank(&self) -> String {
        let rank = self.wait.waiter.rank.unwrap_or(0);
        let by = self.wait.times.outranked_by;
        let by = by.map_or(String::new(), |by| {
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
            "its rank was {rank}, and {by} used {} of {}{}",
            self.share(Holder::Rank),
            self.its_time,
            self.most()
        )
    }

    fn interrupts(&self) -> String {
        let terms = self.case.terms();
        let used = format!(
            "{} used {} and {} {} of {}",
            terms.dpcs,
            self.share(Holder::Dpc),
            terms.isrs,
            self.share(Holder::Isr),
            self.its_time
        );
        match self.wait.weighed.locked_ideal {
            Some((cpu, ns)) => format!(
                "it waited in the queue of its ideal processor, CPU {cpu}, which ran almost \
                 only DPCs and ISRs, for {} of the time ({used})",
                percent(ns, self.wait.waiter.ready_ns())
            ),
            None => used,
        }
    }

    fn affinity(&self) -> String {
        let ExaminedWait {
            waiter,
            times,
            weighed,
            ..
        } = self.wait;
        let kinds = [
            Holder::Priority,
            Holder::Rank,
            Holder::EqualPriority,
            Holder::Dispatcher,
        ];
        let threads_ns: i64 = kinds.into_iter().map(|by| times.by(by)).sum();
        let other_ns = threads_ns.saturating_add(times.by(Holder::Unknown));
        let used = if is_share(other_ns, times.awake_ns(), PARTIAL_CAUSE_PERCENT) {
            format!("which other threads used{}", self.most())
        } else if weighed.has_interrupts {
            "where no other thread ran".to_owned()
        } else {
            "where no other thread ran; DPCs and ISRs are not recorded".to_owned()
        };
        format!(
            "it may run only on {}, {used}, while another CPU was idle for {}",
            cpu_names(waiter.limited_to.as_deref().unwrap_or_default()),
            duration(weighed.idle_beyond_ns.unwrap_or(0))
        )
    }

    /// Returns the clause about a wait of which no cause explains half.
    fn no_cause(&self) -> String {
        let ExaminedWait {
            waiter, weighed, ..
        } = self.wait;
        let its_cpus_were = match waiter.queue {
            Some(_) => format!("{}, was", self.its_cpus),
            None => format!("{} were", self.its_cpus),
        };
        let idle = self.share(Holder::Idle);
        if weighed.is_idle_unexplained && waiter.ready_ns() < IDLE_EXIT_NS {
            return format!(
                "{its_cpus_were} idle for {idle} of the time, and a CPU can need this long to leave an \
                 idle state"
            );
        }
        let unknown = unknown(self.case, self.wait);
        if weighed.is_idle_unexplained {
            return format!(
                "no event explains it: {its_cpus_were} idle for {idle} of the time{unknown}"
            );
        }
        let (higher, same) = (
            self.share(Holder::Priority),
            self.share(Holder::EqualPriority),
        );
        let used = if self.case.is_linux() || self.case.survey.runs_with_rank == 0 {
            format!(
                "Threads of higher priority used {higher}, and threads of the same priority {same}"
            )
        } else {
            format!(
                "Threads of better rank used {}, threads of higher priority {higher}, and threads of the same \
                 priority {same}",
                self.share(Holder::Rank)
            )
        };
        format!(
            "no recorded cause explains half of the wait. {used} of {}. {} idle for {idle} of the time{unknown}",
            self.its_time,
            wording::capitalized(&its_cpus_were)
        )
    }
}

/// Returns the end of a clause about a cause that consists of one kind of threads, for example threads of higher
/// priority. The end of the clause names the other kinds of threads that also used CPU time.
fn partly(wait: &ExaminedWait, its_time: &str) -> String {
    let of_kind = match wait.weighed.cause {
        Some(Cause::Rank) => Holder::Rank,
        Some(Cause::HigherPriority) => Holder::Priority,
        Some(Cause::EqualPriority) => Holder::EqualPriority,
        _ => return String::new(),
    };
    let times = &wait.times;
    let kinds = [
        (Holder::Priority, "higher priority"),
        (Holder::Rank, "better rank"),
        (Holder::EqualPriority, "the same priority"),
    ];
    let others = kinds.into_iter().filter(|(by, _)| {
        *by != of_kind && is_share(times.by(*by), times.awake_ns(), PARTIAL_CAUSE_PERCENT)
    });
    let others: Vec<String> = others
        .map(|(by, name)| {
            let share = percent(times.by(by), times.awake_ns());
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
fn unknown(case: &Case<'_>, wait: &ExaminedWait) -> &'static str {
    if !wait.waiter.affinity_is_known {
        "; the CPUs that it may use are not recorded"
    } else if !wait.weighed.has_interrupts && case.is_linux() {
        "; softirqs and interrupts are not recorded"
    } else if !wait.weighed.has_interrupts {
        "; DPCs and ISRs are not recorded"
    } else if case.survey.runs_with_rank == 0 && !case.is_linux() {
        "; ranks are not recorded"
    } else {
        ""
    }
}
