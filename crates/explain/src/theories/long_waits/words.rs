//! Sentences, subjects, remedies and doubts about the waits of a group.

use super::Argued;
use super::group::Group;
use super::linux;
use super::threaded::Threaded;
use super::weigh::Cause;
use crate::chain::TICK_NS;
use crate::chain::held::By;
use crate::drivers::{DriverInSystem, SYSTEM};
use crate::survey::cpu_names;
use crate::thresholds::{IDLE_EXIT_NS, NOTICED_NS, PARTIAL_CAUSE_PERCENT, is_share};
use crate::{Case, Finding, Name, Subject, counted, duration, grouped, listed, moment, percent};

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
    let at_least = match waiter.is_whole() {
        true => "",
        false => "at least ",
    };
    let lost_ns = match asleep.is_empty() {
        true => waiter.ready_ns(),
        false => waiter.ready_ns() - worst.weighed.asleep_ns,
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
    let threads = group.argued.iter().map(|one| Subject::Thread {
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
    let weighed = group.argued.len();
    let of = match (waiter.process_row, waiter.process_id) {
        (None, None) => "unknown processes".to_owned(),
        (row, id) => case.process(row, id),
    };
    let noticed = group.noticed.filter(|_| group.has_one_cause);
    let noticed = noticed.map_or(0, |noticed| noticed.waits);
    let mut more = match (noticed, weighed) {
        (0 | 1, 1) => String::new(),
        (0 | 1, _) => format!(
            " {} of {of}.",
            counted(weighed as u64 - 1, "more such wait", "more such waits")
        ),
        _ => format!(
            " Threads of {of} waited {} times for {} or longer.",
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
    let length = |group: &Group<'_>| match group.worst().waiter.is_whole() {
        true => duration(group.delay_ns),
        false => format!("at least {}", duration(group.delay_ns)),
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
        let is_it = |of: &&mut Vec<&Group<'_>>| process(of[0]) == process(other);
        match processes.iter_mut().find(is_it) {
            Some(of) => of.push(*other),
            None => processes.push(vec![*other]),
        }
    }
    let mut named: Vec<String> = (processes.iter().take(NAMED))
        .map(|of| {
            let (row, id) = process(of[0]);
            let process = case.processes(row, id);
            let lengths = of.iter().filter(|group| group.delay_ns > 0);
            let lengths: Vec<String> = lengths.map(|group| length(group)).collect();
            match lengths.is_empty() {
                true => process,
                false => format!("{process} ({})", listed(lengths)),
            }
        })
        .collect();
    let rest = processes.len().saturating_sub(NAMED);
    if rest > 0 {
        named.push(counted(rest as u64, "more process", "more processes"));
    }
    if !named.is_empty() {
        let why = match others.iter().all(|other| other.cause() == group.cause()) {
            true => "for the same reason",
            false => "for the same CPU time",
        };
        text += &format!(" Other processes waited {why}: {}.", listed(named));
    }
    text
}

/// Returns the cause of a wait as a clause of a sentence.
pub(super) fn because(case: &Case<'_>, argued: &Argued) -> String {
    let Argued {
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
fn partly(argued: &Argued, its_time: &str) -> String {
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
    match others.is_empty() {
        true => String::new(),
        false => format!("; {}", listed(others)),
    }
}

/// Returns the data that is missing for an explanation, as the end of a clause.
fn unknown(case: &Case<'_>, argued: &Argued) -> &'static str {
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

/// Returns a text for the delay. It names the delayed process and states how the delay was computed.
pub(super) fn cost(case: &Case<'_>, group: &Group<'_>) -> String {
    let waiter = &group.worst().waiter;
    let process = case.process(waiter.process_row, waiter.process_id);
    let noticed = group.noticed.filter(|_| group.has_one_cause);
    let waits = match (noticed, group.argued.len()) {
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

/// Names of processes that Windows needs. Users should not change the priorities of these
/// processes.
const OF_WINDOWS: [&str; 10] = [
    "system",
    "registry",
    "memory compression",
    "smss.exe",
    "csrss.exe",
    "wininit.exe",
    "winlogon.exe",
    "services.exe",
    "lsass.exe",
    "dwm.exe",
];

fn is_of_windows(case: &Case<'_>, row: Option<u32>, id: Option<u32>) -> bool {
    let process = case.names.process(row, id);
    let is_known = |name: &str| OF_WINDOWS.contains(&name.to_lowercase().as_str());
    // A trace may lack the name of System.
    process.id == Some(SYSTEM) || process.name.is_some_and(is_known)
}

/// Returns the remedies for the waits of a group.
pub(super) fn remedies(case: &Case<'_>, group: &Group<'_>) -> Vec<String> {
    if case.is_linux() {
        return linux::remedies(case, group);
    }
    let argued = group.worst();
    let waiter = &argued.waiter;
    let process = &case.process(waiter.process_row, waiter.process_id);
    let most = group.who_ran.most.as_ref();
    let second = argued.weighed.second.as_ref().filter(|second| {
        (second.process_row, second.process_id) != (waiter.process_row, waiter.process_id)
    });
    let who = most.map_or("the programs that ran instead".to_owned(), |most| {
        let second = second.filter(|second| {
            (second.process_row, second.process_id) != (most.process_row, most.process_id)
        });
        let both = std::iter::once(most).chain(second);
        let both = both.map(|of| case.processes(of.process_row, of.process_id));
        listed(both.collect::<Vec<_>>())
    });
    let is_itself = most.is_some() && group.most_of_others().is_none();
    let is_windows =
        most.is_some_and(|most| is_of_windows(case, most.process_row, most.process_id));
    let is_part = is_of_windows(case, waiter.process_row, waiter.process_id);
    let mut remedies = Vec::new();
    if argued.waiter.process_row.is_none() && argued.waiter.process_id.is_none() {
        remedies.push(
            "Record processes and threads too (xperf -on PROC_THREAD, WPR keyword ProcessThread): \
             the trace does not contain the processes of these threads."
                .to_owned(),
        );
        return remedies;
    }
    if !argued.weighed.sampled_locks.is_empty() {
        remedies.push(
            "See the finding about CPUs locked by DPCs and ISRs. Record DPCs and ISRs as well, so that the trace shows \
             their drivers (xperf -on DPC+INTERRUPT, WPR keywords DPC and Interrupt)."
                .to_owned(),
        );
        return remedies;
    }
    match argued.weighed.cause {
        Some(Cause::Rank) => {
            remedies.push(format!(
                "Let less work compete for the CPUs ({who} used most time): a thread with a rank \
                 above 0 runs only while no thread of rank 0 is ready."
            ));
            if process.to_lowercase().starts_with("lockapp.exe") {
                remedies.push(
                    "Turn off the lock screen (NoLockScreen = 1 in \
                     HKLM\\SOFTWARE\\Policies\\Microsoft\\Windows\\Personalization): then logon \
                     does not wait for LockApp.exe. Since Windows 10 1607 only the editions \
                     Enterprise, Education and Server respect it."
                        .to_owned(),
                );
            }
        }
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_itself => remedies.push(format!(
            "Let {process} use fewer threads than there are CPUs: its threads mostly waited for \
             CPUs that its other threads used."
        )),
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_windows => remedies.push(format!(
            "Find out what {who} did (laglab explain --process NAME): drivers and services run \
             in it, and Windows sets its priority."
        )),
        Some(Cause::HigherPriority) => remedies.push(format!(
            "Lower the priority of {who}, or let it use fewer threads: then {process} gets a CPU. \
             If a user waits for {process}, start it in a higher priority class."
        )),
        Some(Cause::EqualPriority) => remedies.push(format!(
            "Let {who} use fewer threads than there are CPUs, or run it in a lower priority class: \
             then {process} does not wait for the end of quanta."
        )),
        Some(Cause::Interrupts) if argued.weighed.locked_ideal.is_some() => remedies.push(
            "See the finding about CPUs locked by DPCs and ISRs: threads whose ideal \
             processor is one of these CPUs wait like this thread."
                .to_owned(),
        ),
        Some(Cause::Interrupts) => remedies.push(
            "Find the driver whose DPCs and ISRs used the CPUs (laglab dpcisr). Update \
             it, or distribute its interrupts over more CPUs."
                .to_owned(),
        ),
        Some(Cause::Affinity) if is_itself && is_part => remedies.push(format!(
            "Find out what {process} did on that CPU (laglab explain --process NAME): its own threads used it, and \
             Windows binds them to CPUs."
        )),
        Some(Cause::Affinity) if is_windows => remedies.push(format!(
            "Find out what {who} did on that CPU (laglab explain --process NAME): drivers and services run in it."
        )),
        Some(Cause::Affinity) if is_part => {
            remedies.push(format!(
                "Keep {who} off that CPU: {process} is part of Windows, which binds its threads to \
                 CPUs."
            ));
        }
        Some(Cause::Affinity) => remedies.push(format!(
            "Let {process} run on every CPU: remove its affinity. A pinned thread waits for its \
             CPU even if others are idle."
        )),
        Some(Cause::PagedOut) => remedies.push(
            "Use less memory or add memory, and move the page file to a faster disk. The flag \
             0x80000 in GlobalFlag of HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager \
             keeps kernel stacks in memory."
                .to_owned(),
        ),
        Some(Cause::LostEvents) => remedies
            .push("See the finding about the capture: record or copy the trace again.".to_owned()),
        Some(Cause::Suspended | Cause::Frozen | Cause::Queue | Cause::Dispatcher) | None => {}
    }
    remedies
}

/// Adds the driver in which threads of System used the CPUs. Its remedy replaces those for programs.
pub(super) fn with_driver(finding: Finding, driver: DriverInSystem) -> Finding {
    let name = Name(&driver.name).to_string();
    let mut finding = finding
        .because(driver.sentence())
        .subjects([Subject::Module {
            name: driver.name.clone(),
        }]);
    finding.remedies = vec![
        format!(
            "Update {name}, or remove the program that it belongs to: threads of this driver used the CPUs. To confirm \
             the cause, record again without it"
        )
        .into(),
    ];
    finding.with(driver.evidence)
}

/// Adds the driver whose threaded DPCs used the CPU, and a remedy.
pub(super) fn with_threaded(finding: Finding, threaded: Threaded) -> Finding {
    let Threaded {
        module,
        times,
        evidence,
    } = threaded;
    finding
        .because(format!(
            "In this time, {} of {} ran in the process System. A thread of normal priority cannot preempt a threaded \
             DPC.",
            counted(times, "threaded DPC", "threaded DPCs"),
            Name(&module)
        ))
        .subjects([Subject::Module {
            name: module.clone(),
        }])
        .with(evidence)
        .remedy(format!(
            "The DPCs of {name} take too long: update {name} or the firmware of its device. Other drivers \
             and threads of this CPU wait as well",
            name = Name(&module)
        ))
}

/// Returns the uncertainties of a wait.
pub(super) fn doubts(case: &Case<'_>, argued: &Argued) -> Vec<String> {
    let mut doubts = Vec::new();
    let waiter = &argued.waiter;
    if argued.weighed.cause == Some(Cause::Rank) {
        doubts.push(
            "A trace contains a thread's rank only when the thread leaves its CPU: the rank of the wait is taken to \
             be the worse one of the ranks before and after the wait. The reason for this rank is not \
             recorded."
                .to_owned(),
        );
    }
    if let Some(cpu) = waiter.queue {
        let limits = match waiter.affinity_is_known {
            true => "",
            false => " The CPUs that it may use are not recorded.",
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
    if argued.weighed.locked_ideal.is_some() {
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
    if argued.weighed.is_idle_unexplained && waiter.ready_ns() >= IDLE_EXIT_NS {
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
