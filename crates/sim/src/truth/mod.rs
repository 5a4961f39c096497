//! The truth: sums of the events in the model. An analysis of the trace should give the same sums.
//! `docs/truth.md` describes the file.

mod file;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use file::Sections;
pub(crate) use file::{Names, ThreadSums};

use crate::scenario::WaitReason;
use crate::time::Time;

/// Maximum number of waits that the truth lists for a watched thread. The longest waits are listed.
const MOST_WAITS: usize = 20;

/// Maximum number of durations of a measured step that are kept for the median.
const MOST_MEASURES: usize = 100_000;

/// Number of histogram buckets, for durations up to 1, 2, 4, … µs.
const BUCKETS: usize = 24;

/// Time of a processor, by use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessorTime {
    pub(crate) threads: Time,
    pub(crate) dpcs: Time,
    pub(crate) isrs: Time,
    pub(crate) clock: Time,
    pub(crate) idle: Time,
}

/// Sums over the executions of a service routine or DPC.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutineSums {
    pub(crate) count: u64,
    pub(crate) inclusive_ns: u64,
    pub(crate) exclusive_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) fragments: u64,
    /// Number of executions by duration: up to 1, 2, 4, … µs, as in `xperf -a dpcisr`.
    pub(crate) histogram: [u64; BUCKETS],
}

impl RoutineSums {
    pub(crate) fn add(&mut self, inclusive_ns: u64, exclusive_ns: u64, fragments: u32) {
        self.count += 1;
        self.inclusive_ns += inclusive_ns;
        self.exclusive_ns += exclusive_ns;
        self.max_ns = self.max_ns.max(inclusive_ns);
        self.fragments += u64::from(fragments);
        let us = inclusive_ns.div_ceil(1_000).max(1);
        let bucket = us.next_power_of_two().ilog2() as usize;
        self.histogram[bucket.min(BUCKETS - 1)] += 1;
    }

    fn merge(&mut self, other: &RoutineSums) {
        self.count += other.count;
        self.inclusive_ns += other.inclusive_ns;
        self.exclusive_ns += other.exclusive_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.fragments += other.fragments;
        for (mine, theirs) in self.histogram.iter_mut().zip(other.histogram) {
            *mine += theirs;
        }
    }
}

/// Key of a sum over routine executions: kind, routine and processor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoutineKey {
    pub(crate) kind: &'static str,
    pub(crate) routine: usize,
    pub(crate) cpu: usize,
}

/// Sums over a time range.
#[derive(Debug)]
pub(crate) struct WindowSums {
    pub(crate) name: String,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) routines: BTreeMap<RoutineKey, RoutineSums>,
    /// Processor time of each part of a routine. The key is the kind of the routine and the number of its body.
    pub(crate) parts: BTreeMap<(&'static str, usize), Vec<Time>>,
    /// Processor time of each process.
    pub(crate) processes: Vec<Time>,
    /// Processor time of all threads, by rank and priority.
    pub(crate) priorities: BTreeMap<(u8, u8), Time>,
}

impl WindowSums {
    /// Returns the length of the overlap of this time range with the time from `from` to `to`.
    pub(crate) fn overlap(&self, from: Time, to: Time) -> Time {
        to.min(self.to).saturating_sub(from.max(self.from))
    }
}

/// Cause that keeps a ready thread from running on a processor that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitCause {
    /// A thread with a better rank (0 is the best) and with the same or a lower priority.
    Rank,
    /// A thread of higher priority.
    Priority,
    /// A thread of the same rank and priority.
    EqualPriority,
    /// A thread with a worse rank or lower priority, on a processor that is not the ideal processor. The
    /// dispatcher compares the ready thread only with the thread on its ideal processor.
    Dispatcher,
    Dpc,
    Isr,
    /// No cause: the processor was idle or waking.
    Idle,
    /// A disk read of the thread's own kernel stack.
    StackPagedOut,
    /// A suspended machine.
    Suspended,
}

/// Wait of a watched thread for a processor: the thread is ready but does not run.
#[derive(Clone, Debug)]
pub(crate) struct ReadyWait {
    pub(crate) thread: usize,
    pub(crate) readied: Time,
    pub(crate) ran: Time,
    pub(crate) rank: u8,
    pub(crate) priority: u8,
    /// Waiting time by the cause that kept the thread from running on a processor. The time is summed over all
    /// processors that the thread may use: 1 ms of waiting with four such processors counts as 4 ms.
    pub(crate) held: BTreeMap<WaitCause, Time>,
}

/// A watched thread's wait for an object or a time.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// Id of the thread that ended the wait; `None` if a DPC or the clock interrupt ended it.
    pub(crate) readied_by: Option<u32>,
}

/// Sums over the waits of a watched thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitSums {
    pub(crate) waits: Vec<ReadyWait>,
    pub(crate) count: u64,
    pub(crate) total: Time,
    /// Number of times that the thread stopped running, by its rank.
    pub(crate) ranks: BTreeMap<u8, u64>,
    /// Number of times that the thread stopped running, by its priority.
    pub(crate) priorities: BTreeMap<u8, u64>,
    /// Longest waits for an object or a time.
    pub(crate) longest: Vec<Wait>,
}

impl WaitSums {
    pub(crate) fn waited(&mut self, wait: Wait) {
        self.longest.push(wait);
        if self.longest.len() > 4 * MOST_WAITS {
            self.keep_longest();
        }
    }

    pub(crate) fn add(&mut self, wait: ReadyWait) {
        self.count += 1;
        self.total += wait.ran - wait.readied;
        self.waits.push(wait);
        if self.waits.len() > 4 * MOST_WAITS {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        self.waits
            .sort_by_key(|wait| (std::cmp::Reverse(wait.ran - wait.readied), wait.readied));
        self.waits.truncate(MOST_WAITS);
        self.longest
            .sort_by_key(|wait| (std::cmp::Reverse(wait.to - wait.from), wait.from));
        self.longest.truncate(MOST_WAITS);
    }
}

/// Longest time during which no watched thread of a process ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    pub(crate) running: u32,
    pub(crate) since: Time,
    pub(crate) longest: (Time, Time),
}

impl Gap {
    /// Ends the gap. Called when a watched thread of the process runs again, and at the end of the
    /// trace.
    pub(crate) fn end_at(&mut self, time: Time) {
        let (from, to) = self.longest;
        if self.running == 0 && time - self.since > to - from {
            self.longest = (self.since, time);
        }
    }
}

/// Sums over a flow's packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowSums {
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) by_cpu: BTreeMap<usize, u64>,
    /// Number of sent packets by the DSCP mark with which they leave the machine.
    pub(crate) sent_dscp: BTreeMap<u8, u64>,
}

/// Sums over a disk's transfers.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskSums {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) response_ns: u64,
}

/// Durations of a measured step.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// First durations, from which the median is computed.
    pub(crate) first: Vec<u64>,
}

impl Measure {
    pub(crate) fn new(name: String) -> Measure {
        Measure {
            name,
            count: 0,
            min: u64::MAX,
            max: 0,
            first: Vec::new(),
        }
    }
}

/// All sums of a running model.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) processors: Vec<ProcessorTime>,
    /// Sums over the whole trace, followed by the sums over the scenario's time ranges.
    pub(crate) windows: Vec<WindowSums>,
    pub(crate) watched: BTreeMap<usize, WaitSums>,
    pub(crate) gaps: BTreeMap<usize, Gap>,
    /// Waits of watched threads that are ready now.
    pub(crate) waiting: Vec<ReadyWait>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) flows: Vec<FlowSums>,
    pub(crate) disks: Vec<DiskSums>,
    /// Number of samples of each process except the idle process.
    pub(crate) samples: Vec<u64>,
    pub(crate) idle_samples: u64,
    pub(crate) hard_faults: u64,
    pub(crate) moments: Vec<Moment>,
    /// Number of moments that are not in `moments`, because `moments` has reached its maximum length.
    pub(crate) moments_left_out: u64,
}

/// A change of state at a moment: focus, key, freeze, suspend, resolution and others.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) time: Time,
    pub(crate) what: &'static str,
    pub(crate) process: Option<usize>,
    pub(crate) value: Option<u64>,
}

impl Truth {
    pub(crate) fn measured(&mut self, name: usize, ns: u64) {
        let measure = &mut self.measures[name];
        measure.count += 1;
        measure.min = measure.min.min(ns);
        measure.max = measure.max.max(ns);
        if measure.first.len() < MOST_MEASURES {
            measure.first.push(ns);
        }
    }
}
