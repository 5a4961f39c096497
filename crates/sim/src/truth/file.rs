//! Contents of the truth file: the sums, with names, in nanoseconds.

use std::collections::BTreeMap;

use rules::quantum::Quantum;
use serde::Serialize;

use super::{
    FlowSums, Gap, Measure, ReadyWait, RoutineSums, Truth, WaitCause, WaitSums, WindowSums,
};
use crate::scenario::WaitReason;
use crate::time::{Time, TimeBase};

/// Names, ids and other data that the truth file adds to the sums.
pub(crate) struct Names<'a> {
    pub(crate) base: TimeBase,
    pub(crate) end: Time,
    /// Id and image name of each process.
    pub(crate) processes: Vec<(u32, &'a str)>,
    /// All threads. The idle thread is first.
    pub(crate) threads: Vec<ThreadSums<'a>>,
    /// `module!function` of each routine.
    pub(crate) routines: &'a [String],
    pub(crate) flows: &'a [String],
    pub(crate) disks: Vec<u32>,
    /// `module!function` of each part of each body (a list of stacks).
    pub(crate) parts: &'a [Vec<String>],
    /// Quantum settings of Win32PrioritySeparation.
    pub(crate) quantum: Quantum,
    /// Final quantum of each process except Idle, in units.
    pub(crate) units: Vec<u8>,
}

/// A thread and the processor time that it used.
pub(crate) struct ThreadSums<'a> {
    pub(crate) id: u32,
    pub(crate) process: usize,
    pub(crate) name: &'a str,
    pub(crate) cpu: Time,
    pub(crate) switches: u64,
}

impl Names<'_> {
    fn process(&self, p: usize) -> ProcessName {
        let (id, name) = self.processes[p];
        ProcessName {
            id,
            name: name.to_owned(),
        }
    }
}

impl Truth {
    /// Returns the sums in the form of the truth file's sections.
    pub(crate) fn sections(mut self, names: &Names<'_>) -> Sections {
        let ns = |time| names.base.ns(time);
        for watched in self.watched.values_mut() {
            watched.keep_longest();
        }
        Sections {
            duration_ns: ns(names.end),
            processors: (self.processors.iter().enumerate())
                .map(|(cpu, time)| ProcessorTruth {
                    cpu,
                    thread_ns: ns(time.threads),
                    dpc_ns: ns(time.dpcs),
                    isr_ns: ns(time.isrs),
                    clock_ns: ns(time.clock),
                    idle_ns: ns(time.idle),
                })
                .collect(),
            processes: self.processes(names),
            threads: names
                .threads
                .iter()
                .skip(1)
                .map(|t| ThreadTruth {
                    thread_id: t.id,
                    process_id: names.processes[t.process].0,
                    name: t.name.to_owned(),
                    cpu_ns: ns(t.cpu),
                    switches_in: t.switches,
                })
                .collect(),
            idle_samples: self.idle_samples,
            hard_faults: self.hard_faults,
            windows: self
                .windows
                .iter()
                .map(|window| window.truth(names))
                .collect(),
            watched_threads: (self.watched.iter())
                .map(|(t, watched)| watched.truth(*t, &self.waiting, names))
                .collect(),
            longest_gaps: (self.gaps.iter())
                .map(|(p, gap)| gap.truth(*p, names))
                .collect(),
            measured: self.measures.iter_mut().map(MeasureTruth::new).collect(),
            flows: (self.flows.iter().zip(names.flows))
                .map(|(flow, name)| FlowTruth::new(name, flow))
                .collect(),
            disks: (self.disks.iter().zip(&names.disks))
                .map(|(disk, number)| DiskTruth {
                    disk: *number,
                    reads: disk.reads,
                    writes: disk.writes,
                    read_bytes: disk.read_bytes,
                    written_bytes: disk.written_bytes,
                    response_ns: disk.response_ns,
                })
                .collect(),
            moments_left_out: self.moments_left_out,
            moments: self
                .moments
                .iter()
                .map(|moment| MomentTruth {
                    at_ns: ns(moment.time),
                    what: moment.what,
                    process: moment.process.map(|p| names.process(p)),
                    value: moment.value,
                })
                .collect(),
            quantum: QuantumTruth::new(names),
        }
    }

    fn processes(&self, names: &Names<'_>) -> Vec<ProcessTruth> {
        (0..names.processes.len())
            .map(|p| {
                let threads = || names.threads.iter().filter(|t| t.process == p);
                ProcessTruth {
                    process: names.process(p),
                    cpu_ns: names.base.ns(threads().map(|t| t.cpu).sum()),
                    switches_in: threads().map(|t| t.switches).sum(),
                    samples: self.samples[p],
                }
            })
            .collect()
    }
}

impl WaitSums {
    /// Returns the waits of the thread with index `t`. `waiting` are the threads that are still ready at the end.
    fn truth(&self, t: usize, waiting: &[ReadyWait], names: &Names<'_>) -> WatchedThread {
        let ns = |time| names.base.ns(time);
        WatchedThread {
            thread_id: names.threads[t].id,
            process: names.process(names.threads[t].process),
            ready_waits: self.count,
            ready_ns: ns(self.total),
            still_ready_since_ns: (waiting.iter())
                .find(|wait| wait.thread == t)
                .map(|wait| ns(wait.readied)),
            ranks_at_switch_out: self.ranks.clone(),
            priorities_at_switch_out: self.priorities.clone(),
            longest_ready_waits: (self.waits.iter())
                .map(|wait| WaitTruth {
                    readied_ns: ns(wait.readied),
                    ran_ns: ns(wait.ran),
                    ready_ns: names.base.ns_between(wait.readied, wait.ran),
                    rank: wait.rank,
                    priority: wait.priority,
                    held_by_cpu_ns: wait.held.iter().map(|(by, t)| (*by, ns(*t))).collect(),
                })
                .collect(),
            longest_waits: (self.longest.iter())
                .map(|wait| OtherWaitTruth {
                    from_ns: ns(wait.from),
                    to_ns: ns(wait.to),
                    waited_ns: names.base.ns_between(wait.from, wait.to),
                    reason: wait.reason,
                    readied_by_thread_id: wait.readied_by,
                })
                .collect(),
        }
    }
}

impl Gap {
    fn truth(&self, p: usize, names: &Names<'_>) -> GapTruth {
        let (from, to) = self.longest;
        GapTruth {
            process: names.process(p),
            from_ns: names.base.ns(from),
            to_ns: names.base.ns(to),
            gap_ns: names.base.ns_between(from, to),
        }
    }
}

impl WindowSums {
    /// Returns the time of service routines and DPCs by function.
    fn functions(&self, names: &Names<'_>) -> Vec<FunctionCpu> {
        let mut all: BTreeMap<(&'static str, &str), Time> = BTreeMap::new();
        for ((kind, body), takes) in &self.parts {
            for (takes, function) in takes.iter().zip(&names.parts[*body]) {
                *all.entry((kind, function)).or_default() += takes;
            }
        }
        all.into_iter()
            .filter(|(_, takes)| *takes > 0)
            .map(|((kind, function), takes)| FunctionCpu {
                kind,
                function: function.to_owned(),
                cpu_ns: names.base.ns(takes),
            })
            .collect()
    }

    fn truth(&self, names: &Names<'_>) -> WindowTruth {
        let ns = |time| names.base.ns(time);
        // The sums over all processors precede the sums of single processors.
        let mut all: BTreeMap<(&'static str, usize), RoutineSums> = BTreeMap::new();
        for (key, sums) in &self.routines {
            all.entry((key.kind, key.routine)).or_default().merge(sums);
        }
        let routine = |kind, routine: usize, cpu, sums: &RoutineSums| RoutineTruth {
            kind,
            routine: names.routines[routine].clone(),
            cpu,
            count: sums.count,
            inclusive_ns: sums.inclusive_ns,
            exclusive_ns: sums.exclusive_ns,
            max_ns: sums.max_ns,
            fragments: sums.fragments,
            histogram_log2_us: sums.histogram.to_vec(),
        };
        let totals = all
            .iter()
            .map(|((kind, r), sums)| routine(kind, *r, None, sums));
        let by_cpu = self
            .routines
            .iter()
            .map(|(key, sums)| routine(key.kind, key.routine, Some(key.cpu), sums));
        WindowTruth {
            name: self.name.clone(),
            from_ns: ns(self.from),
            to_ns: ns(self.to.min(names.end)),
            routines: totals.chain(by_cpu).collect(),
            functions: self.functions(names),
            process_cpu_ns: (self.processes.iter().enumerate())
                .filter(|(_, time)| **time > 0)
                .map(|(p, time)| ProcessCpu {
                    process: names.process(p),
                    cpu_ns: ns(*time),
                })
                .collect(),
            cpu_by_rank_and_priority: (self.priorities.iter())
                .map(|((rank, priority), time)| PriorityCpu {
                    rank: *rank,
                    priority: *priority,
                    cpu_ns: ns(*time),
                })
                .collect(),
        }
    }
}

/// Sections of the truth file that contain sums. Moments are in nanoseconds since the trace's
/// start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sections {
    duration_ns: u64,
    processors: Vec<ProcessorTruth>,
    processes: Vec<ProcessTruth>,
    threads: Vec<ThreadTruth>,
    idle_samples: u64,
    hard_faults: u64,
    windows: Vec<WindowTruth>,
    watched_threads: Vec<WatchedThread>,
    longest_gaps: Vec<GapTruth>,
    measured: Vec<MeasureTruth>,
    flows: Vec<FlowTruth>,
    disks: Vec<DiskTruth>,
    moments: Vec<MomentTruth>,
    moments_left_out: u64,
    /// Quanta at the end of the trace.
    quantum: QuantumTruth,
}

#[derive(Clone, Debug, Serialize)]
struct ProcessName {
    id: u32,
    name: String,
}

#[derive(Clone, Debug, Serialize)]
struct ProcessorTruth {
    cpu: usize,
    thread_ns: u64,
    dpc_ns: u64,
    isr_ns: u64,
    clock_ns: u64,
    idle_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ProcessTruth {
    #[serde(flatten)]
    process: ProcessName,
    cpu_ns: u64,
    switches_in: u64,
    samples: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ThreadTruth {
    thread_id: u32,
    process_id: u32,
    name: String,
    cpu_ns: u64,
    switches_in: u64,
}

#[derive(Clone, Debug, Serialize)]
struct WindowTruth {
    name: String,
    from_ns: u64,
    to_ns: u64,
    routines: Vec<RoutineTruth>,
    functions: Vec<FunctionCpu>,
    process_cpu_ns: Vec<ProcessCpu>,
    cpu_by_rank_and_priority: Vec<PriorityCpu>,
}

#[derive(Clone, Debug, Serialize)]
struct RoutineTruth {
    kind: &'static str,
    routine: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<usize>,
    count: u64,
    inclusive_ns: u64,
    exclusive_ns: u64,
    max_ns: u64,
    fragments: u64,
    histogram_log2_us: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct FunctionCpu {
    kind: &'static str,
    function: String,
    cpu_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ProcessCpu {
    #[serde(flatten)]
    process: ProcessName,
    cpu_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct PriorityCpu {
    rank: u8,
    priority: u8,
    cpu_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct WatchedThread {
    thread_id: u32,
    process: ProcessName,
    ready_waits: u64,
    ready_ns: u64,
    still_ready_since_ns: Option<u64>,
    ranks_at_switch_out: BTreeMap<u8, u64>,
    priorities_at_switch_out: BTreeMap<u8, u64>,
    longest_ready_waits: Vec<WaitTruth>,
    longest_waits: Vec<OtherWaitTruth>,
}

#[derive(Clone, Debug, Serialize)]
struct OtherWaitTruth {
    from_ns: u64,
    to_ns: u64,
    waited_ns: u64,
    reason: WaitReason,
    /// Id of the thread that ended the wait; absent if a DPC or the clock interrupt ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    readied_by_thread_id: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
struct QuantumTruth {
    long: bool,
    variable: bool,
    separation: u8,
    processes: Vec<ProcessQuantum>,
}

impl QuantumTruth {
    fn new(names: &Names<'_>) -> QuantumTruth {
        QuantumTruth {
            long: names.quantum.long,
            variable: names.quantum.variable,
            separation: names.quantum.separation,
            processes: (1..)
                .zip(&names.units)
                .map(|(p, units)| ProcessQuantum {
                    process: names.process(p),
                    units: *units,
                })
                .collect(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct ProcessQuantum {
    #[serde(flatten)]
    process: ProcessName,
    units: u8,
}

#[derive(Clone, Debug, Serialize)]
struct WaitTruth {
    readied_ns: u64,
    ran_ns: u64,
    ready_ns: u64,
    rank: u8,
    priority: u8,
    held_by_cpu_ns: BTreeMap<WaitCause, u64>,
}

#[derive(Clone, Debug, Serialize)]
struct GapTruth {
    process: ProcessName,
    from_ns: u64,
    to_ns: u64,
    gap_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct MeasureTruth {
    name: String,
    count: u64,
    min_ns: Option<u64>,
    median_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl MeasureTruth {
    fn new(measure: &mut Measure) -> MeasureTruth {
        measure.first.sort_unstable();
        let known = (measure.count > 0).then_some(());
        MeasureTruth {
            name: std::mem::take(&mut measure.name),
            count: measure.count,
            min_ns: known.map(|()| measure.min),
            median_ns: measure.first.get(measure.first.len() / 2).copied(),
            max_ns: known.map(|()| measure.max),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct FlowTruth {
    name: String,
    received_packets: u64,
    received_bytes: u64,
    sent_packets: u64,
    sent_bytes: u64,
    lost_packets: u64,
    received_by_cpu: BTreeMap<usize, u64>,
    sent_by_dscp: BTreeMap<u8, u64>,
}

impl FlowTruth {
    fn new(name: &str, sums: &FlowSums) -> FlowTruth {
        FlowTruth {
            name: name.to_owned(),
            received_packets: sums.received,
            received_bytes: sums.received_bytes,
            sent_packets: sums.sent,
            sent_bytes: sums.sent_bytes,
            lost_packets: sums.lost,
            received_by_cpu: sums.by_cpu.clone(),
            sent_by_dscp: sums.sent_dscp.clone(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct DiskTruth {
    disk: u32,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    written_bytes: u64,
    response_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct MomentTruth {
    at_ns: u64,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
}
