//! Sentences, subjects, remedies and doubts about the waits of a group.

use crate::chain::TICK_NS;
use crate::chain::cpu_wait::group::Group;
use crate::chain::cpu_wait::weigh::Cause;
use crate::chain::cpu_wait::{ExaminedWait, because};
use crate::drivers::DriverInSystem;
use crate::thresholds::{IDLE_EXIT_NS, NOTICED_NS};
use crate::{Case, Name, Subject, counted, duration, grouped, listed, moment};

/// Maximum number of other processes that a sentence names.
const NAMED: usize = 4;

/// Returns sentences that name the thread that waited, the length of the wait and its cause. `driver` is the driver in
/// which threads of System used the CPUs.
pub(super) fn sentence(
    case: &Case<'_>,
    group: &Group<'_>,
    driver: Option<&DriverInSystem>,
) -> String {
    let worst = group.worst();
    let waiter = &worst.waiter;
    let who = case.thread(
        (waiter.thread_row, waiter.thread_id),
        (waiter.process_row, waiter.process_id),
    );
    let priority = match waiter.priority() {
        Some(priority) => format!(", {},", case.priority_words(priority)),
        None => String::new(),
    };
    // If the wait is short, its start and end are shown to the microsecond.
    let moment = |ns: i64| match waiter.ready_ns() {
        ..10_000_000 => format!("{:.6} s", ns as f64 / 1e9),
        _ => moment(ns),
    };
    let until = match waiter.wait {
        Some(_) if waiter.ticks_before.is_some() => format!(
            "from before the recording began at {} until {}",
            moment(waiter.range.start),
            moment(waiter.range.end)
        ),
        Some(_) => format!(
            "{} to {}",
            moment(waiter.range.start),
            moment(waiter.range.end)
        ),
        None if waiter.range.end < case.survey.span.end => format!(
            "from {}, and still at {}, when the complete record of all CPUs ends",
            moment(waiter.range.start),
            moment(waiter.range.end)
        ),
        None => format!(
            "from {}, and still when the trace ended",
            moment(waiter.range.start)
        ),
    };
    let asleep = match worst.weighed.asleep_ns {
        ns if ns > 0 && worst.weighed.cause != Some(Cause::Suspended) => {
            format!(
                ", without {} for which {}",
                duration(ns),
                case.survey.suspend_gaps.clause()
            )
        }
        _ => String::new(),
    };
    let at_least = if waiter.is_whole() { "" } else { "at least " };
    let lost_ns = if asleep.is_empty() {
        waiter.ready_ns()
    } else {
        waiter.ready_ns() - worst.weighed.asleep_ns
    };
    let of_driver = driver.map_or(String::new(), |driver| {
        format!(
            " This was the CPU time of the driver {}.",
            Name(&driver.name)
        )
    });
    let sentence = format!(
        "{}{priority} was ready for {at_least}{} ({until}{asleep}) and got no CPU: {}.{of_driver}",
        wording::capitalized(&who),
        duration(lost_ns),
        because(case, worst),
    );
    sentence + &more(case, group) + &others(case, group)
}

/// Returns the subjects: the threads that waited, their processes, and the process that ran.
pub(super) fn subjects(case: &Case<'_>, group: &Group<'_>) -> Vec<Subject> {
    let threads = group.waits.iter().map(|one| Subject::Thread {
        id: one.waiter.thread_id,
        row: one.waiter.thread_row,
        process_row: one.waiter.process_row,
    });
    let mut subjects: Vec<Subject> = threads.collect();
    let processes = std::iter::once(group).chain(group.others.iter().take(NAMED));
    subjects.extend(processes.filter_map(|group| {
        let waiter = &group.worst().waiter;
        case.process_subject(waiter.process_row, waiter.process_id)
    }));
    let most = group.worst().weighed.most.as_ref();
    subjects.extend(most.and_then(|most| case.process_subject(most.process_row, most.process_id)));
    subjects
}

/// Returns sentences about the other waits of the process.
fn more(case: &Case<'_>, group: &Group<'_>) -> String {
    let waiter = &group.worst().waiter;
    let weighed = group.waits.len();
    let owners = match (waiter.process_row, waiter.process_id) {
        (None, None) => "unknown processes".to_owned(),
        (row, id) => case.process(row, id),
    };
    let noticed = group.noticed.filter(|_| group.has_one_cause);
    let noticed = noticed.map_or(0, |noticed| noticed.waits);
    let mut more = match (noticed, weighed) {
        (0 | 1, 1) => String::new(),
        (0 | 1, _) => format!(
            " {} of {owners}.",
            counted(weighed as u64 - 1, "more such wait", "more such waits")
        ),
        _ => format!(
            " Threads of {owners} waited {} times for {} or longer.",
            grouped(noticed),
            duration(NOTICED_NS)
        ),
    };
    if weighed > 1 {
        let most = group.who_ran.most.as_ref();
        let is_about_who_ran =
            is_about_who_ran(group.cause()) && group.worst().weighed.sampled_locks.is_empty();
        if let Some(most) = most.filter(|_| is_about_who_ran) {
            more += &format!(
                " During all examined waits with this cause, {} used most of {}: {}.",
                case.processes(most.process_row, most.process_id),
                match waiter.its_cpus() {
                    Some(_) => "the time of the CPUs for which the threads waited",
                    None => "the CPU time",
                },
                duration(most.ns)
            );
        }
    }
    if !group.smaller.is_empty() {
        let causes = group.smaller.iter();
        let causes = causes.map(|(cause, ns)| {
            let name = cause.map_or("unknown or several", |cause| cause.name(case));
            format!("{name} {}", duration(*ns))
        });
        more += &format!(
            " Other causes of its waits: {}.",
            listed(causes.collect::<Vec<_>>())
        );
    }
    more
}

/// Returns true if the wait is caused by other threads that ran.
fn is_about_who_ran(cause: Option<Cause>) -> bool {
    matches!(
        cause,
        Some(
            Cause::HigherPriority
                | Cause::EqualPriority
                | Cause::Rank
                | Cause::Affinity
                | Cause::Queue
        )
    )
}

/// Returns sentences about the other waits that have the same cause: of the same process, if they are recorded only in
/// part, and of other processes.
fn others(case: &Case<'_>, group: &Group<'_>) -> String {
    let process = |group: &Group<'_>| {
        let waiter = &group.worst().waiter;
        (waiter.process_row, waiter.process_id)
    };
    let length = |group: &Group<'_>| {
        if group.worst().waiter.is_whole() {
            duration(group.delay_ns)
        } else {
            format!("at least {}", duration(group.delay_ns))
        }
    };
    let is_own = |other: &&Group<'_>| process(other) == process(group);
    let (own, others): (Vec<&Group<'_>>, Vec<&Group<'_>>) = group.others.iter().partition(is_own);
    let own = own.into_iter().map(|own| {
        let waiter = &own.worst().waiter;
        let when = match waiter.wait.is_some() {
            true if waiter.ticks_before.is_some() => "when the recording began",
            true => "at other times",
            false => "when the trace ended",
        };
        format!(" It also waited {when}, for {}.", length(own))
    });
    let mut text: String = own.collect();
    // A process can have several groups: its waits that are recorded only in part are separate.
    let mut processes: Vec<Vec<&Group<'_>>> = Vec::new();
    for other in &others {
        let is_it = |groups: &&mut Vec<&Group<'_>>| process(groups[0]) == process(other);
        match processes.iter_mut().find(is_it) {
            Some(groups) => groups.push(*other),
            None => processes.push(vec![*other]),
        }
    }
    let mut named: Vec<String> = (processes.iter().take(NAMED))
        .map(|groups| {
            let (row, id) = process(groups[0]);
            let process = case.processes(row, id);
            let lengths = groups.iter().filter(|group| group.delay_ns > 0);
            let lengths: Vec<String> = lengths.map(|group| length(group)).collect();
            if lengths.is_empty() {
                process
            } else {
                format!("{process} ({})", listed(lengths))
            }
        })
        .collect();
    let rest = processes.len().saturating_sub(NAMED);
    if rest > 0 {
        named.push(counted(rest as u64, "more process", "more processes"));
    }
    if !named.is_empty() {
        let why = if others.iter().all(|other| other.cause() == group.cause()) {
            "for the same reason"
        } else {
            "for the same CPU time"
        };
        text += &format!(" Other processes waited {why}: {}.", listed(named));
    }
    text
}

/// Returns a text for the delay. It names the delayed process and states how the delay was computed.
pub(super) fn cost(case: &Case<'_>, group: &Group<'_>) -> String {
    let waiter = &group.worst().waiter;
    let process = case.process(waiter.process_row, waiter.process_id);
    let noticed = group.noticed.filter(|_| group.has_one_cause);
    let waits = match (noticed, group.waits.len()) {
        (Some(noticed), _) if noticed.waits > 1 => format!(
            "in {} waits of {} or longer",
            grouped(noticed.waits),
            duration(NOTICED_NS)
        ),
        (_, 1) | (Some(_), _) => return format!("of {process} (suspension excluded)"),
        (None, n) => format!(
            "in its {} longest waits{}, doubtful waits excluded",
            grouped(n as u64),
            if group.has_one_cause {
                ""
            } else {
                " with this cause"
            }
        ),
    };
    format!("of {process}, {waits} (overlaps counted once, suspension excluded)")
}

pub(super) fn doubts(case: &Case<'_>, wait: &ExaminedWait) -> Vec<String> {
    let mut doubts = Vec::new();
    let waiter = &wait.waiter;
    if wait.weighed.cause == Some(Cause::Rank) {
        doubts.push(
            "A trace contains a thread's rank only when the thread leaves its CPU: the rank of the wait is taken to \
             be the worse one of the ranks before and after the wait. The reason for this rank is not \
             recorded."
                .to_owned(),
        );
    }
    if let Some(cpu) = waiter.queue {
        let limits = if waiter.affinity_is_known {
            ""
        } else {
            " The CPUs that it may use are not recorded."
        };
        doubts.push(format!(
            "Linux has a queue of ready threads for each CPU. No event shows in which one it waited: CPU {cpu} is where \
             it ran last before the wait{}.{limits}",
            match waiter.wait {
                Some(_) => " and first after it",
                None => "",
            }
        ));
    }
    if let Some(ticks) = waiter.ticks_before {
        doubts.push(format!(
            "It was ready before the recording began, and only the time since the recording began \
             counts. The kernel counted {} before it ran (about {}). Microsoft does not document \
             whether this count begins when a thread becomes ready or when it begins to wait.",
            counted(u64::from(ticks), "clock tick", "clock ticks"),
            duration(i64::from(ticks).saturating_mul(TICK_NS))
        ));
    }
    if waiter.certain.is_some()
        && let Some(wait) = &waiter.wait
    {
        doubts.push(format!(
            "It was readied at {}, but switches or samples are missing until {}, so it may have \
             run unseen: only the time after that counts.",
            moment(wait.range().start),
            moment(waiter.range.start)
        ));
    }
    if wait.weighed.locked_ideal.is_some() {
        doubts.push(format!(
            "A trace contains a thread's ideal processor only when the thread leaves its CPU: the ideal \
             processor during the wait is taken from the end of the run {} the wait.",
            match waiter.wait {
                Some(_) => "after",
                None => "before",
            }
        ));
    }
    if waiter.ran_unseen {
        doubts.push(
            "Switches are missing: it may have been a shorter wait, or several waits.".to_owned(),
        );
    }
    if wait.may_have_run(case) {
        doubts.push(
            "Switches are missing in this recording, and nothing explains the wait: the thread probably ran unseen.".to_owned(),
        );
    }
    if wait.weighed.is_idle_unexplained && waiter.ready_ns() >= IDLE_EXIT_NS {
        doubts.push(
            "A ready thread takes an idle CPU at once, so the idle time is unexplained. Either the \
             CPU was late: a hypervisor did not run a virtual CPU, or a parked CPU or one in a deep \
             idle state woke late. Or the thread was not allowed to use it: an affinity, CPU set or \
             limit is not recorded."
                .to_owned(),
        );
    }
    if case.survey.interrupts.routines.is_empty() {
        doubts.push(format!(
            "{} are not recorded: their time counts as time of the interrupted threads, or as idle.",
            wording::capitalized(case.terms().routines)
        ));
    }
    if !case.survey.has_ready_events {
        doubts.push(
            "Without ready-thread events, only waits of threads that lost their CPU are known."
                .to_owned(),
        );
    }
    doubts
}
