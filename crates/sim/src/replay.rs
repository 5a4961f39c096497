//! Replay of recorded work: the model runs bursts, waits and interrupts from a trace instead of a scenario.
//!
//! A [`Workload`] is the input. [`run`] executes it by the rules of the model, and returns the use of the
//! processors by each thread. Nothing is logged. Numbers in a workload are nanoseconds since its start.

use std::collections::BTreeSet;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::clock::ClockInterrupt;
pub use crate::model::RunError;
use crate::scenario::MAX_CPUS;
pub use crate::windows::Windows;

/// Maximum length of a workload, 13 days. The model shortens longer durations to this one.
const LONGEST_NS: u64 = crate::time::FOREVER;
/// Maximum boost: that of the field `AdjustIncrement` of a ReadyThread event, which has 8 bits and a sign.
const MAX_BOOST: u8 = i8::MAX as u8;
/// Maximum number of a disk's queue.
const MAX_DISK: u32 = 1 << 16;
/// Maximum number of queues of scheduling groups. There is a queue of 1 KiB for each processor and process with ranks.
const MAX_QUEUES: usize = 1 << 16;

/// Work of a machine over some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Machine, and settings of its scheduler.
    pub machine: Machine,
    /// Length of the recorded time.
    pub duration_ns: u64,
    /// Processes. Threads refer to them by index.
    pub processes: Vec<Process>,
    /// Threads with their steps.
    pub threads: Vec<Thread>,
    /// Interrupts, and times at which causes outside of the model wake threads. Disk requests refer to them by index.
    pub interrupts: Vec<Interrupt>,
    /// Disk requests. Waits refer to them by index.
    pub requests: Vec<Request>,
    /// Changes of the machine's state, sorted by time.
    pub moments: Vec<Moment>,
}

/// Machine of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Build number of Windows.
    pub build: u32,
    /// Number of logical processors.
    pub cpus: u16,
    /// Number of logical processors of a core.
    pub threads_per_core: u16,
    /// Number of NUMA nodes.
    pub nodes: u16,
    /// Registry value Win32PrioritySeparation.
    pub priority_separation: u32,
    /// True if the machine has the long, fixed quanta of a server by default.
    pub server: bool,
    /// True if requests for a timer resolution count for all processes (registry value
    /// GlobalTimerResolutionRequests).
    pub global_timer_requests: bool,
    /// Time from a clock interrupt to the wake of a thread whose timer expires at it.
    pub timer_expiry_ns: u64,
    /// Time of the first clock interrupt.
    pub clock_phase_ns: u64,
    /// Time after which a thread yields to another one of its priority. `None` means the default of the build.
    pub short_slice_ns: Option<u64>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            build: Windows::Ten.build(),
            cpus: 1,
            threads_per_core: 1,
            nodes: 1,
            priority_separation: 2,
            server: false,
            global_timer_requests: false,
            timer_expiry_ns: 1_000,
            clock_phase_ns: 0,
            short_slice_ns: None,
        }
    }
}

/// Process of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process id.
    pub id: u32,
    /// File name of the image, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if its priority class is idle, so that its threads have the shortest quantum.
    #[serde(default)]
    pub idle_class: bool,
}

/// Thread of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Thread id.
    pub id: u32,
    /// Name of the thread, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Index of its process.
    pub process: u32,
    /// Base priority at the start, 0 to 31.
    pub base_priority: u8,
    /// Processors on which it may run. `None` means all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Vec<u16>>,
    /// Ideal processor.
    pub ideal: u16,
    /// Processor on which it ran first.
    pub first_cpu: u16,
    /// Time at which it becomes ready for its first step. If `None`, it waits in its first step from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_ns: Option<u64>,
    /// True if the thread repeats its steps after the last one, because the recording ended before the thread.
    #[serde(default)]
    pub repeats: bool,
    /// Work of the thread.
    pub steps: Vec<Step>,
}

/// Step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Uses the processor for this time. The time of interrupts and DPCs is not included.
    Run(u64),
    /// Ends a wait of another thread.
    Wake(Wake),
    /// Waits.
    Wait(Wait),
    /// Changes the thread's base priority.
    Base(u8),
    /// Ends the thread.
    Exit,
}

/// Wake of a thread, which ends one of its waits. If the wake comes before this wait begins, the wait takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// Index of the thread whose wait ends.
    pub thread: u32,
    /// Number of the wait, counted from 0 among the waits of the thread.
    pub wait: u32,
    /// Boost of the thread's priority.
    pub boost: u8,
}

/// Wait of a thread, by the event that ends it. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A [`Wake`] of another thread ends the wait.
    Wake,
    /// A [`Wake`] of an interrupt ends the wait. The number is the recorded length of the wait.
    Event(u64),
    /// The first clock interrupt after this time ends the wait.
    Sleep(u64),
    /// The wait ends after this time.
    After(u64),
    /// The disk request with this index ends the wait.
    Disk(u32),
}

/// Interrupt: service routines and DPCs that run one after the other on a processor. An interrupt without routines only
/// wakes threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// Start. `None` if a disk request causes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Processor.
    pub cpu: u16,
    /// Parts, in their order. The next part begins when the part before it ends.
    pub parts: Vec<Part>,
}

/// Part of an interrupt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Kind of routine.
    pub kind: PartKind,
    /// Module of the routine, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Arc<str>>,
    /// Processor time, without the time of routines that interrupted this one. If it is 0, the part only wakes threads.
    pub ns: u64,
    /// Waits that end when the part ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<Wake>,
}

/// Kind of routine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// Deferred procedure call.
    #[default]
    Dpc,
    /// Service routine of the interrupt with this vector.
    Isr(u16),
}

/// Disk request of a thread that waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Number of the disk's queue. A disk serves one request after the other.
    pub disk: u32,
    /// Time that the disk works on the request.
    pub service_ns: u64,
    /// Index of the interrupt that the disk raises when the request is complete. It wakes the thread.
    pub interrupt: u32,
}

/// Moment at which the machine's state changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Time of the change.
    pub at_ns: u64,
    /// Change.
    pub change: Change,
}

/// Change of the machine's state. Processes are given by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The process gets the focus. `None` means that no process has the focus.
    Focus(Option<u32>),
    /// The process is frozen.
    Freeze(u32),
    /// The process is thawed.
    Thaw(u32),
    /// The scheduling group of the process has this rank.
    Rank(u32, u8),
    /// The process requests a timer resolution in units of 100 ns, or withdraws its request.
    Resolution(u32, Option<u32>),
    /// The machine sleeps for this time in nanoseconds.
    Suspend(u64),
}

/// Options of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Time range in which waits and processor time are measured. `None` means the whole workload.
    pub measured: Option<Range<u64>>,
    /// Start of each interrupt, used instead of the recorded start. Interrupts of disk requests have no start.
    pub starts: Option<Vec<Option<u64>>>,
    /// True if waits for interrupts last as long as recorded (closed arrivals). False if interrupts end them at the
    /// recorded times (open arrivals).
    pub closed: bool,
}

/// Use of the processors by a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessorUse {
    /// Processor time in nanoseconds.
    pub cpu_ns: u64,
    /// Durations from the moment when the thread became ready until it ran, or until the end of the measured time, in
    /// nanoseconds. The first run of a thread that starts does not count.
    pub ready_ns: Vec<u64>,
    /// Durations from the end of a wait to the thread's next wait or to its end, or until the end of the measured time,
    /// in nanoseconds.
    pub response_ns: Vec<u64>,
}

/// Result of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayResult {
    /// Use of the processors, in the order of the workload's threads.
    pub threads: Vec<ProcessorUse>,
}

/// Error in a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The number of processors is out of range.
    #[error("it has {0} processors; expected 1 to {MAX_CPUS}")]
    Cpus(u16),
    /// A time is after the maximum length of a workload.
    #[error("it has a time of {0} ns; expected at most {LONGEST_NS} ns")]
    Time(u64),
    /// An index refers to an item that is absent.
    #[error("there is no {what} {index}")]
    Absent {
        /// Kind of item.
        what: &'static str,
        /// Index.
        index: u32,
    },
    /// A priority is out of range.
    #[error("it has the priority {0}; expected 0 to 31")]
    Priority(u8),
    /// A boost is out of range.
    #[error("it has a boost of {0}; expected 0 to {MAX_BOOST}")]
    Boost(u8),
    /// The thread with this id may run on no processor.
    #[error("thread {0} has no processor")]
    NoProcessor(u32),
    /// The thread with this id never begins its first step.
    #[error("thread {0} has no start; expected that it first waits for a thread or an interrupt")]
    NoStart(u32),
    /// The number of a disk's queue is out of range.
    #[error("it has a disk {0}; expected 0 to {MAX_DISK}")]
    Disk(u32),
    /// Too many processes have ranks.
    #[error("{ranked} processes have ranks; expected at most {most} for this number of processors")]
    Ranks {
        /// Number of processes with ranks.
        ranked: usize,
        /// Maximum number.
        most: usize,
    },
    /// The measured time has no part of the workload.
    #[error("the measured time, {from_ns} to {to_ns} ns, has no part of its {duration_ns} ns")]
    Measured {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
        /// Length of the workload.
        duration_ns: u64,
    },
}

/// Runs a workload. Calls `go_on` from time to time with the share of the work that is complete. If `go_on` returns
/// false, the replay is cancelled.
///
/// # Errors
/// Returns an error if the workload or the measured time is wrong, the replay cannot continue, or `go_on` returns
/// false.
pub fn run(
    workload: &Arc<Workload>,
    options: &Options,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<ReplayResult, RunError> {
    workload.check()?;
    if let Some(range) = &options.measured {
        workload.check_measured(range)?;
    }
    let model = crate::model::build_replay(workload, options)?;
    model.replay(&mut go_on)
}

impl Thread {
    /// Returns the index of the step with which the steps begin again.
    pub(crate) fn first_repeated(&self) -> usize {
        usize::from(self.starts_ns.is_none())
    }
}

impl Workload {
    /// Checks that all indices and numbers are in range.
    ///
    /// # Errors
    /// Returns the first error.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let machine = &self.machine;
        if machine.cpus == 0 || machine.cpus > MAX_CPUS {
            return Err(WorkloadError::Cpus(machine.cpus));
        }
        let starts = self
            .interrupts
            .iter()
            .filter_map(|interrupt| interrupt.at_ns);
        let moments = self.moments.iter().map(|moment| moment.at_ns);
        let mut times = starts.chain(moments).chain([self.duration_ns]);
        if let Some(time) = times.find(|time| *time > LONGEST_NS) {
            return Err(WorkloadError::Time(time));
        }
        let exists = |what, index: u32, count: usize| {
            if (index as usize) < count {
                Ok(())
            } else {
                Err(WorkloadError::Absent { what, index })
            }
        };
        let process = |index| exists("process", index, self.processes.len());
        let cpu = |number: u16| exists("processor", number.into(), machine.cpus.into());
        let wake = |wake: &Wake| match wake.boost {
            0..=MAX_BOOST => exists("thread", wake.thread, self.threads.len()),
            boost => Err(WorkloadError::Boost(boost)),
        };
        let priority = |level: u8| match level {
            0..=31 => Ok(()),
            level => Err(WorkloadError::Priority(level)),
        };
        for thread in &self.threads {
            process(thread.process)?;
            cpu(thread.ideal)?;
            cpu(thread.first_cpu)?;
            priority(thread.base_priority)?;
            let affinity = thread.affinity.iter().flatten();
            affinity.copied().try_for_each(cpu)?;
            if thread.affinity.as_ref().is_some_and(Vec::is_empty) {
                return Err(WorkloadError::NoProcessor(thread.id));
            }
            let first = thread.steps.first();
            let is_woken = matches!(first, Some(Step::Wait(Wait::Wake | Wait::Event(_))));
            if thread.starts_ns.is_none() && !is_woken {
                return Err(WorkloadError::NoStart(thread.id));
            }
            for step in &thread.steps {
                match step {
                    Step::Wake(of) => wake(of)?,
                    Step::Base(of) => priority(*of)?,
                    Step::Wait(Wait::Disk(of)) => exists("disk request", *of, self.requests.len())?,
                    Step::Run(_) | Step::Wait(_) | Step::Exit => {}
                }
            }
        }
        for interrupt in &self.interrupts {
            cpu(interrupt.cpu)?;
            let mut wakes = interrupt.parts.iter().flat_map(|part| &part.wakes);
            wakes.try_for_each(wake)?;
        }
        for request in &self.requests {
            exists("interrupt", request.interrupt, self.interrupts.len())?;
            if request.disk > MAX_DISK {
                return Err(WorkloadError::Disk(request.disk));
            }
        }
        for moment in &self.moments {
            match moment.change {
                Change::Focus(Some(of))
                | Change::Freeze(of)
                | Change::Thaw(of)
                | Change::Rank(of, _)
                | Change::Resolution(of, _) => process(of)?,
                Change::Focus(None) | Change::Suspend(_) => {}
            }
        }
        let ranked = self.ranked().len();
        match MAX_QUEUES / usize::from(machine.cpus) {
            most if ranked > most => Err(WorkloadError::Ranks { ranked, most }),
            _ => Ok(()),
        }
    }

    /// Checks that a measured time range has a part of the workload.
    ///
    /// # Errors
    /// Returns an error if the range is empty or begins after the end of the workload.
    pub fn check_measured(&self, range: &Range<u64>) -> Result<(), WorkloadError> {
        if range.start < range.end.min(self.duration_ns) {
            Ok(())
        } else {
            Err(WorkloadError::Measured {
                from_ns: range.start,
                to_ns: range.end,
                duration_ns: self.duration_ns,
            })
        }
    }

    /// Returns the processes that have ranks, sorted.
    pub(crate) fn ranked(&self) -> BTreeSet<u32> {
        (self.moments.iter())
            .filter_map(|moment| match moment.change {
                Change::Rank(process, _) => Some(process),
                _ => None,
            })
            .collect()
    }
}

impl Windows {
    /// Returns the known release whose rules the model applies to a build. Builds
    /// from 9000 on have the rules of Windows 10 22H2, builds from 22000 on those of Windows 11 23H2, and builds from
    /// 26200 on those of Windows 11 25H2.
    pub fn of_build(build: u32) -> Windows {
        match build {
            26_200.. => Windows::Eleven25H2,
            22_000.. => Windows::Eleven23H2,
            9_000.. => Windows::Ten,
            _ => Windows::Seven,
        }
    }
}

/// Output that discards all bytes, because a replay logs no events.
#[derive(Debug, Default)]
pub(crate) struct Nowhere {
    at: u64,
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) | SeekFrom::End(by) => self.at.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}
