//! What really happened inside the model, summed while it happens: the answers that whoever reads
//! the trace should find. `docs/truth.md` describes the file.

mod file;

use std::collections::BTreeMap;

use serde::Serialize;

pub use file::Sections;
pub(crate) use file::{Names, ThreadSums};

use crate::scenario::WaitReason;
use crate::time::Time;

/// Most single ready waits that are told of a watched thread: the longest ones.
const MOST_WAITS: usize = 20;

/// Most durations of a measured step that are kept for the median.
const MOST_MEASURES: usize = 100_000;

/// Buckets of a histogram: durations of up to 1, 2, 4, … µs.
const BUCKETS: usize = 24;

/// What a processor did with its time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessorTime {
    pub(crate) threads: Time,
    pub(crate) dpcs: Time,
    pub(crate) isrs: Time,
    pub(crate) clock: Time,
    pub(crate) idle: Time,
}

/// Sums over the runs of a service routine or DPC.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutineSums {
    pub(crate) count: u64,
    pub(crate) inclusive_ns: u64,
    pub(crate) exclusive_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) fragments: u64,
    /// By duration: up to 1, 2, 4, … µs, as `xperf -a dpcisr` has them.
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

/// A class of routine runs: what, of which kind, on which processor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoutineKey {
    pub(crate) kind: &'static str,
    pub(crate) routine: usize,
    pub(crate) cpu: usize,
}

/// What is summed over a range of time.
#[derive(Debug)]
pub(crate) struct WindowSums {
    pub(crate) name: String,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) routines: BTreeMap<RoutineKey, RoutineSums>,
    /// Time of each part of the routines, by kind and body.
    pub(crate) parts: BTreeMap<(&'static str, usize), Vec<Time>>,
    /// Processor time of each process, and of all threads by rank and priority.
    pub(crate) processes: Vec<Time>,
    pub(crate) priorities: BTreeMap<(u8, u8), Time>,
}

impl WindowSums {
    /// How much of a run lies in the window.
    pub(crate) fn overlap(&self, from: Time, to: Time) -> Time {
        to.min(self.to).saturating_sub(from.max(self.from))
    }
}

/// What kept a ready thread from a processor that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeldBy {
    /// A thread of better rank whose priority is no higher.
    Rank,
    /// A thread of higher priority.
    Priority,
    /// A thread of the same rank and priority.
    EqualPriority,
    /// A thread that should have made room, had the dispatcher compared them: it looks only at the
    /// ideal processor.
    Dispatcher,
    Dpc,
    Isr,
    /// The processor was idle or waking.
    Idle,
    /// The thread's own kernel stack was being read from disk.
    StackPagedOut,
    /// The machine was suspended.
    Suspended,
}

/// A watched thread's ready wait.
#[derive(Clone, Debug)]
pub(crate) struct ReadyWait {
    pub(crate) thread: usize,
    pub(crate) readied: Time,
    pub(crate) ran: Time,
    pub(crate) rank: u8,
    pub(crate) priority: u8,
    /// Processor time by what held it.
    pub(crate) held: BTreeMap<HeldBy, Time>,
}

/// A watched thread's wait for an object or a time.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// The id of the thread that ended it; `None` if a DPC or the clock interrupt did.
    pub(crate) readied_by: Option<u32>,
}

/// Sums over a watched thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub(crate) waits: Vec<ReadyWait>,
    pub(crate) count: u64,
    pub(crate) total: Time,
    /// How often it stopped running at each rank.
    pub(crate) ranks: BTreeMap<u8, u64>,
    pub(crate) priorities: BTreeMap<u8, u64>,
    /// The longest of its other waits.
    pub(crate) longest: Vec<Wait>,
}

impl Watched {
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

/// A process's longest time without running.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    pub(crate) running: u32,
    pub(crate) since: Time,
    pub(crate) longest: (Time, Time),
}

impl Gap {
    /// The process runs again, or the trace ends.
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
    /// Packets sent by the mark that they carry on the wire.
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

/// How long a measured step took.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The first durations, for the median.
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

/// Everything that is summed while the model runs.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) processors: Vec<ProcessorTime>,
    /// The whole trace first, then the scenario's windows.
    pub(crate) windows: Vec<WindowSums>,
    pub(crate) watched: BTreeMap<usize, Watched>,
    pub(crate) gaps: BTreeMap<usize, Gap>,
    /// Ready waits of watched threads that are not over.
    pub(crate) waiting: Vec<ReadyWait>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) flows: Vec<FlowSums>,
    pub(crate) disks: Vec<DiskSums>,
    /// Samples of each process, idle aside.
    pub(crate) samples: Vec<u64>,
    pub(crate) idle_samples: u64,
    pub(crate) hard_faults: u64,
    pub(crate) moments: Vec<Moment>,
    /// How many more there were.
    pub(crate) moments_left_out: u64,
}

/// Something that happened at a moment: focus, key, freeze, suspend, resolution.
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
