//! Words, remedies and evidence for waits of Linux.

use tables::StoreError;

use super::ExaminedWait;
use super::group::Group;
use super::weigh::Cause;
use crate::chain::holder_times::{Holder, Most};
use crate::chain::raisers::Raisers;
use crate::chain::routine_times::RoutineTimes;
use crate::chain::waiter::Waiter;
use crate::thresholds::{CAUSE_PERCENT, PARTIAL_CAUSE_PERCENT, is_share};
use crate::{Case, Finding, Name, Source, Subject, counted, duration};

/// Remedy for interrupts and softirqs that use a CPU.
pub(crate) const SPREAD: &str = "Spread the interrupts over more CPUs or move them away from this one: \
    /proc/irq/N/smp_affinity, irqbalance, and for packets rps_cpus of the network device";

static SOURCES: [Source; 2] = [
    Source {
        title: "Linux manual: sched(7), scheduling policies",
        url: Some("https://man7.org/linux/man-pages/man7/sched.7.html"),
    },
    Source {
        title: "Linux kernel: tracepoints of the scheduler (include/trace/events/sched.h)",
        url: None,
    },
];

/// Returns the clause about threads of the same priority. `share` is the part of the CPUs' time that they used.
pub(crate) fn equals(waiter: &Waiter, share: &str, its_time: &str) -> String {
    match waiter.priority() {
        Some(1..=99) => format!(
            "threads of the same real-time priority used {share} of {its_time} (with SCHED_FIFO until they \
             block, with SCHED_RR in turns)"
        ),
        _ => {
            format!("other fair threads used {share} of {its_time}, each a share by its nice value")
        }
    }
}

/// Nice values of a waiting fair thread and of the threads that ran instead.
struct Niceness {
    own: i8,
    /// Nice value of the threads that used most of the time.
    others: i8,
    /// Share of the CPU of a thread with the nice value `others`, as a multiple of the waiting thread's share.
    shares: f64,
}

impl Niceness {
    /// Factor between the shares of two threads whose nice values differ by 1. Source: the comment at
    /// `sched_prio_to_weight` in `kernel/sched/core.c` of Linux.
    const STEP: f64 = 1.25;

    /// Returns the nice values; `None` if the thread's own value is unknown, or most of the others' time has no common
    /// value.
    fn read(wait: &ExaminedWait) -> Option<Niceness> {
        let own = wait.waiter.wait?.nice?;
        let by_time = |(nice, ns): &(&i8, &i64)| (**ns, -**nice);
        let (others, ns) = wait.times.by_nice.iter().max_by_key(by_time)?;
        let all_ns: i64 = wait.times.by_nice.values().sum();
        if !is_share(*ns, all_ns, CAUSE_PERCENT) {
            return None;
        }
        let steps = i32::from(own) - i32::from(*others);
        Some(Niceness {
            own,
            others: *others,
            shares: Niceness::STEP.powi(steps),
        })
    }
}

/// Returns true if threads of another priority than the waiting thread used a notable part of the CPUs' time. The
/// program with most CPU time may then be the program of these threads.
pub(crate) fn is_mixed(wait: &ExaminedWait) -> bool {
    let times = &wait.times;
    let others_ns = times.by(Holder::Priority) + times.by(Holder::Dispatcher);
    is_share(others_ns, times.awake_ns(), PARTIAL_CAUSE_PERCENT)
}

/// Returns the clause about threads of lower priority. `share` is the part of the CPUs' time that they used.
pub(crate) fn lower(waiter: &Waiter, share: &str, its_cpus: &str) -> String {
    let because = match waiter.priority() {
        Some(1..=99) => "the kernel throttles real-time threads that use all time of a CPU",
        _ => "the kernel limited its time",
    };
    format!(
        "threads of lower priority ran for {share} of the time on {its_cpus}; either {because}, or the waiting \
         thread may not run there"
    )
}

pub(crate) fn remedies(case: &Case<'_>, group: &Group<'_>) -> Vec<String> {
    let worst = group.worst();
    let waiter = &worst.waiter;
    let process = &case.process(waiter.process_row, waiter.process_id);
    let most = group.who_ran.most.as_ref();
    let most =
        most.filter(|_| worst.weighed.cause != Some(Cause::EqualPriority) || !is_mixed(worst));
    let who = most.map_or("the programs that ran instead".to_owned(), |most| {
        case.processes(most.process_row, most.process_id)
    });
    let is_itself = most.is_some() && group.most_of_others().is_none();
    let remedy = match worst.weighed.cause {
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_of_softirqs(case, most) => {
            format!("{SPREAD}.")
        }
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_itself => format!(
            "Let {process} use fewer threads than there are CPUs: its threads mostly waited for CPUs \
             that its other threads used."
        ),
        Some(Cause::HigherPriority) => format!(
            "Lower the real-time priority of {who} (chrt -p), use the normal policy there (chrt -o -p 0), or \
             choose other CPUs for {who} (taskset -p): then {process} gets a CPU. If {process} is more \
             urgent, give {process} a higher real-time priority."
        ),
        Some(Cause::EqualPriority)
            if waiter.priority() == Some(0) && is_kernel_thread(case, most) =>
        {
            format!(
                "Find out why {who} works so much, because it is a thread of the kernel (perf record -g -C CPU shows its \
                 code), or increase the share of {process} (nice, cpu.weight of the cgroup). If {process} must run at \
                 once, give {process} a real-time priority (chrt -f)."
            )
        }
        Some(Cause::EqualPriority) if waiter.priority() == Some(0) => format!(
            "Let {who} use fewer threads than there are CPUs, or reduce the share of {who} (nice, \
             cpu.weight of the cgroup). If {process} must run at once, give {process} a real-time \
             priority (chrt -f)."
        ),
        Some(Cause::EqualPriority) => format!(
            "Give {process} a higher real-time priority than {who} (chrt -f -p), or let them run on \
             different CPUs (taskset -p)."
        ),
        Some(Cause::Dispatcher) => "Check the limits of real-time threads \
            (/proc/sys/kernel/sched_rt_runtime_us), the cgroup's cpu.max, and the CPUs that the thread \
            may use (taskset -p)."
            .to_owned(),
        Some(Cause::Interrupts) => format!("{SPREAD}."),
        Some(Cause::Affinity) => format!(
            "Let {process} run on more CPUs (taskset -p, cpuset of its cgroup), or keep {who} away from \
             its CPU. A pinned thread waits for its CPU even if others are idle."
        ),
        Some(Cause::Queue) => format!(
            "Check which CPUs {process} may use (taskset -p, cpuset of its cgroup, isolcpus in /proc/cmdline): \
             usually the scheduler moves a waiting thread to an idle CPU within some milliseconds."
        ),
        Some(Cause::LostEvents) => {
            "See the finding about the capture: record again with larger buffers (perf record -m 16M)."
                .to_owned()
        }
        _ => return Vec::new(),
    };
    vec![remedy]
}

/// Adds the sources of facts about Linux to the finding about a wait. If interrupts caused the wait, also adds evidence
/// with the interrupts and softirqs that used the CPUs.
pub(crate) fn add_details(
    case: &Case<'_>,
    mut finding: Finding,
    group: &Group<'_>,
) -> Result<Finding, StoreError> {
    finding.sources = SOURCES.to_vec();
    let worst = group.worst();
    if worst.waiter.has_idle_policy {
        finding = finding.because(
            "The waiting thread has the policy SCHED_IDLE: it gives way to all threads of other policies.",
        );
    }
    if worst.weighed.cause == Some(Cause::EqualPriority)
        && let Some(Niceness {
            own,
            others,
            shares,
        }) = Niceness::read(worst).filter(|nice| nice.shares > 1.0)
    {
        finding = finding.because(format!(
            "The waiting thread has the nice value {own}. Most of the others' time went to threads with the nice value \
             {others}: within a cgroup, each of them gets {shares:.1} times its share."
        ));
    }
    let in_threads = is_of_softirqs(case, group.who_ran.most.as_ref());
    if worst.weighed.cause != Some(Cause::Interrupts) && !in_threads {
        return Ok(finding);
    }
    let waiter = &worst.waiter;
    let within = waiter.range.start..waiter.range.end.saturating_add(1);
    let cpus = waiter.its_cpus();
    let times = RoutineTimes::read(case, within.clone(), cpus, in_threads)?;
    let Some(most) = times.routines.first() else {
        return Ok(finding);
    };
    let time = if in_threads {
        "ksoftirqd runs softirqs. Most of their time"
    } else {
        "Most of this time"
    };
    let because = format!(
        "{time} went to {}: {} in {}.",
        Name(&most.name),
        duration(most.ns),
        counted(most.runs, "run", "runs")
    );
    let name = most.name.clone();
    let finding = finding
        .because(because)
        .subjects([Subject::Routine { name }])
        .with(times.evidence("Softirqs and interrupts that ended during the wait"));
    Ok(match most.softirq {
        Some(softirq) => Raisers::read(case, softirq, within, cpus)?.add_to(finding),
        None => finding,
    })
}

/// Returns true if a process is a thread of the kernel that runs softirqs, because there are too many for interrupts.
fn is_of_softirqs(case: &Case<'_>, process: Option<&Most>) -> bool {
    let process = process.map(|thread| case.names.process(thread.process_row, thread.process_id));
    let name = process.and_then(|process| process.name);
    name.is_some_and(|name| name.starts_with("ksoftirqd/"))
}

/// Returns true if a process is a thread of the kernel.
fn is_kernel_thread(case: &Case<'_>, process: Option<&Most>) -> bool {
    let row = process.and_then(|process| process.process_row);
    row.is_some_and(|row| case.names.is_kernel_thread(row))
}
