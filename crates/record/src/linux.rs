//! Events to record on Linux, by theory, by table and by investigation.

use std::fmt;

use crate::Investigation;

/// Event that a Linux kernel can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Tracepoint: the name of its subsystem, and its name.
    Tracepoint(&'static str, &'static str),
    /// Expiry of a timer that ends a period of a limit on CPU time: `timer:hrtimer_expire_entry` with a function of
    /// [`LIMIT_TIMERS`].
    LimitTimers,
    /// Page fault that waits for a disk, with its address.
    MajorFaults,
    /// Sample of the running code, with its call chain.
    CpuClock,
}

/// Functions of the kernel that run when a period of a limit on CPU time ends.
pub const LIMIT_TIMERS: [&str; 3] = [
    "dl_task_timer",
    "sched_cfs_period_timer",
    "sched_rt_period_timer",
];

impl Event {
    /// Returns the name of the event, as `perf list` prints it.
    pub fn name(self) -> String {
        match self {
            Event::Tracepoint(..) | Event::LimitTimers => {
                let (system, name) = self.tracepoint();
                format!("{system}:{name}")
            }
            Event::MajorFaults => "major-faults".to_owned(),
            Event::CpuClock => "cpu-clock".to_owned(),
        }
    }

    /// Returns the subsystem and the name of the tracepoint. Both texts are empty if the event is not a tracepoint.
    pub fn tracepoint(self) -> (&'static str, &'static str) {
        match self {
            Event::Tracepoint(system, name) => (system, name),
            Event::LimitTimers => ("timer", "hrtimer_expire_entry"),
            Event::MajorFaults | Event::CpuClock => ("", ""),
        }
    }
}

/// Events that give names to threads and processes.
const NAMES: &[Event] = &[
    Event::Tracepoint("sched", "sched_process_exec"),
    Event::Tracepoint("sched", "sched_process_exit"),
    Event::Tracepoint("task", "task_newtask"),
    Event::Tracepoint("task", "task_rename"),
];

/// Advice for several theories that need the same events. Formatted, it can follow the word “record”.
#[derive(Debug, PartialEq, Eq)]
pub struct Advice {
    theories: &'static [&'static str],
    /// Name of the events or facts, as text that can follow the word “record”.
    what: &'static str,
    events: &'static [Event],
    /// Options of `perf record` before the list of events.
    options: &'static str,
    /// Name of further data that the theories need, as text after the events.
    and: &'static str,
}

const OPTIONS: &str = "-a -e";

static ADVICE: [Advice; 16] = [
    Advice {
        theories: &[
            "long-waits",
            "saturation",
            "cpu-use",
            "suspended",
            "clocks",
            "stopped",
            "higher-priority",
            "equal-priority",
            "dispatcher",
            "machine-suspended",
            "late-answers",
            "late-waker",
            "short-waits",
        ],
        what: "context switches and wakes",
        events: &[
            Event::Tracepoint("sched", "sched_switch"),
            Event::Tracepoint("sched", "sched_waking"),
            Event::Tracepoint("sched", "sched_wakeup_new"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &[
            "interrupted-cpus",
            "locked-cpus",
            "long-interrupts",
            "receive-spread",
        ],
        what: "interrupts and softirqs",
        events: &[
            Event::Tracepoint("irq", "irq_handler_entry"),
            Event::Tracepoint("irq", "irq_handler_exit"),
            Event::Tracepoint("irq", "softirq_entry"),
            Event::Tracepoint("irq", "softirq_exit"),
            Event::Tracepoint("irq_vectors", "local_timer_entry"),
            Event::Tracepoint("irq_vectors", "local_timer_exit"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["affinity"],
        what: "the CPUs that threads may use, in the file FILE.proc next to the recording (see docs/linux.md)",
        events: &[],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["stolen-time"],
        what: "the times of the CPUs before and after the recording, in the file FILE.proc (see docs/linux.md)",
        events: &[],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["cpu-limit"],
        what: "timers",
        events: &[Event::LimitTimers],
        options: OPTIONS,
        and: ", and the addresses of their functions in the file FILE.proc next to the recording (see docs/linux.md)",
    },
    Advice {
        theories: &["capture", "lost-events"],
        what: "again, with larger buffers (perf record -m 16M)",
        events: &[],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["frozen", "process-frozen"],
        what: "freezes of cgroups",
        events: &[
            Event::Tracepoint("cgroup", "cgroup_notify_frozen"),
            Event::Tracepoint("cgroup", "cgroup_attach_task"),
        ],
        options: OPTIONS,
        and: ", and the cgroups of processes in the file FILE.proc next to the recording (see docs/linux.md)",
    },
    Advice {
        theories: &["disks", "io-limit"],
        what: "disk requests",
        events: &[
            Event::Tracepoint("block", "block_bio_queue"),
            Event::Tracepoint("block", "block_rq_issue"),
            Event::Tracepoint("block", "block_rq_complete"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["hard-faults"],
        what: "hard faults and the page faults before them",
        events: &[
            Event::MajorFaults,
            Event::Tracepoint("exceptions", "page_fault_user"),
            Event::Tracepoint("exceptions", "page_fault_kernel"),
        ],
        options: "-a -c 1 -d -e",
        and: "",
    },
    Advice {
        theories: &["memory-reclaim"],
        what: "memory reclaims",
        events: &[
            Event::Tracepoint("vmscan", "mm_vmscan_direct_reclaim_begin"),
            Event::Tracepoint("vmscan", "mm_vmscan_direct_reclaim_end"),
            Event::Tracepoint("vmscan", "mm_vmscan_memcg_reclaim_begin"),
            Event::Tracepoint("vmscan", "mm_vmscan_memcg_reclaim_end"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["samples", "busy-waiting"],
        what: "samples with call chains",
        events: &[Event::CpuClock],
        options: "-a -g -F 999 -e",
        and: "",
    },
    Advice {
        theories: &["switch-stacks"],
        what: "context switches and wakes with call chains",
        events: &[
            Event::Tracepoint("sched", "sched_switch"),
            Event::Tracepoint("sched", "sched_waking"),
            Event::Tracepoint("sched", "sched_wakeup_new"),
        ],
        options: "-a -g -e",
        and: "",
    },
    Advice {
        theories: &["priorities"],
        what: "moves of threads and inherited priorities",
        events: &[
            Event::Tracepoint("sched", "sched_migrate_task"),
            Event::Tracepoint("sched", "sched_pi_setprio"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["lock-convoy", "priority-inversion"],
        what: "calls that wait for locks",
        events: &[Event::Tracepoint("syscalls", "sys_enter_futex")],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["timer-slack"],
        what: "starts and ends of timers",
        events: &[
            Event::Tracepoint("timer", "hrtimer_start"),
            Event::Tracepoint("timer", "hrtimer_expire_entry"),
        ],
        options: OPTIONS,
        and: "",
    },
    Advice {
        theories: &["events"],
        what: "other tracepoints (perf record -a -e SUBSYSTEM:NAME; `perf list` lists them)",
        events: &[],
        options: OPTIONS,
        and: "",
    },
];

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if !self.events.is_empty() {
            let names: Vec<String> = self.events.iter().map(|event| event.name()).collect();
            write!(f, " (perf record {} {})", self.options, names.join(","))?;
        }
        f.write_str(self.and)
    }
}

/// Returns advice on what a recording on Linux needs for a verdict of the theory.
pub fn for_theory(theory: &str) -> Option<&'static Advice> {
    let mut all = ADVICE.iter();
    all.find(|advice| advice.theories.contains(&theory))
}

/// Returns the name of the rows of a table, in the plural, and advice on what a recording on Linux needs for these
/// rows.
pub fn for_table(table: &str) -> Option<(&'static str, String)> {
    let (rows, theory) = match table {
        "context_switches" | "cpu_runs" => ("context switches", "long-waits"),
        "ready_threads" => ("wakes", "long-waits"),
        "interrupts" => ("interrupts and softirqs", "interrupted-cpus"),
        "processes" | "threads" => ("records of processes and threads", "long-waits"),
        "images" => ("records of mapped files", "samples"),
        "limit_periods" => ("timers of CPU limits", "cpu-limit"),
        "disk_io" => ("disk requests", "disks"),
        "futex_waits" => ("waits for futexes", "lock-convoy"),
        "slack_timers" => ("timers with slack", "timer-slack"),
        "memory_reclaims" => ("memory reclaims", "memory-reclaim"),
        "hard_faults" => ("hard page faults", "hard-faults"),
        "process_freezes" => ("freezes of cgroups", "frozen"),
        "samples" => ("samples", "samples"),
        "stacks" => ("call chains", "samples"),
        "priorities" => ("changes of priority", "priorities"),
        "events" => ("other tracepoints", "events"),
        _ => return None,
    };
    for_theory(theory).map(|advice| (rows, advice.to_string()))
}

/// Returns the name of the rows of a table that only recordings of Linux fill, in the plural. Returns `None` for other
/// tables.
pub fn only_on_linux(table: &str) -> Option<&'static str> {
    let is_filled_on_windows = crate::needs::for_table(table).is_some();
    for_table(table)
        .filter(|_| !is_filled_on_windows)
        .map(|(rows, _)| rows)
}

/// Returns the theories that answer the question of an investigation on Linux. Returns no theories if the question is
/// about Windows.
pub fn theories(investigation: Investigation) -> &'static [&'static str] {
    match investigation {
        Investigation::LongWait => &[
            "long-waits",
            "late-answers",
            "interrupted-cpus",
            "locked-cpus",
            "long-interrupts",
            "cpu-limit",
            "stopped",
            "frozen",
            "memory-reclaim",
            "stolen-time",
            "saturation",
            "cpu-use",
            "suspended",
            "clocks",
        ],
        Investigation::Dpc => &[
            "long-waits",
            "interrupted-cpus",
            "locked-cpus",
            "long-interrupts",
            "receive-spread",
        ],
        Investigation::Cpu => &[
            "cpu-use",
            "saturation",
            "stolen-time",
            "cpu-limit",
            "samples",
            "busy-waiting",
        ],
        Investigation::Disk => &[
            "long-waits",
            "disks",
            "io-limit",
            "hard-faults",
            "memory-reclaim",
        ],
        Investigation::Full => &[
            "long-waits",
            "late-answers",
            "interrupted-cpus",
            "locked-cpus",
            "long-interrupts",
            "receive-spread",
            "cpu-limit",
            "stopped",
            "frozen",
            "lock-convoy",
            "priority-inversion",
            "timer-slack",
            "disks",
            "io-limit",
            "hard-faults",
            "memory-reclaim",
            "stolen-time",
            "saturation",
            "cpu-use",
            "suspended",
            "clocks",
            "samples",
            "busy-waiting",
            "priorities",
        ],
        Investigation::Rank
        | Investigation::Timer
        | Investigation::Network
        | Investigation::Dscp
        | Investigation::Resume
        | Investigation::Boot => &[],
    }
}

/// Returns the events that the theories of an investigation need, and the events that give names to threads and
/// processes. Returns no events if the question is about Windows.
pub fn events(investigation: Investigation) -> Vec<Event> {
    let theories = theories(investigation).iter();
    let needed = theories.filter_map(|theory| for_theory(theory));
    let mut events: Vec<Event> = Vec::new();
    for event in needed.flat_map(|advice| advice.events) {
        if !events.contains(event) {
            events.push(*event);
        }
    }
    if !events.is_empty() {
        events.extend(NAMES);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn investigations_record_the_events_of_their_theories() {
        for investigation in Investigation::ALL {
            let events = events(investigation);
            for theory in theories(investigation) {
                let advice = for_theory(theory).unwrap();
                assert!(
                    advice.events.iter().all(|event| events.contains(event)),
                    "{theory}"
                );
            }
            let has_switches = events.contains(&Event::Tracepoint("sched", "sched_switch"));
            assert_eq!(has_switches, !theories(investigation).is_empty());
        }
    }

    #[test]
    fn advice_is_a_command_of_perf() {
        assert_eq!(
            for_theory("long-waits").unwrap().to_string(),
            "context switches and wakes (perf record -a -e \
             sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new)"
        );
        assert_eq!(
            for_theory("affinity")
                .unwrap()
                .to_string()
                .matches("perf")
                .count(),
            0
        );
        assert_eq!(for_theory("quantum"), None);
    }
}
