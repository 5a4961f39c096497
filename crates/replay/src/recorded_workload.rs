//! A recorded workload, with the recorded use of the processors and what the recording lacks.

use serde::{Deserialize, Serialize};
use sim::replay::Workload;

use crate::summary::Summary;

/// Workload of a trace, with what its threads used in the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedWorkload {
    /// Workload of the trace.
    pub workload: Workload,
    /// Use of the processors by each thread of the workload, as recorded.
    pub threads: Vec<Record>,
    /// Facts about the recording that limit predictions.
    pub notes: Vec<Note>,
    /// Time range in which waits and processor time are measured, in nanoseconds. `None` means the whole recording.
    pub measured: Option<(u64, u64)>,
}

/// Recorded use of the processors by a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Use of the processors.
    pub summary: Summary,
    /// Mechanisms that the replay of the thread lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lack>,
}

/// Mechanism that the replay of a thread lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The thread's priority is unknown.
    Priority,
    /// The thread never ran, so its demand is unknown.
    NeverRan,
    /// Context switches are missing, so the thread may have run unseen.
    Doubtful,
    /// The thread's kernel stack had to be read from a disk.
    PagedOut,
    /// The processors on which the thread may run are unknown.
    Affinity,
    /// The thread's affinity changed during the recording.
    AffinityChanges,
    /// A cap on the processor time of the thread's group stopped it.
    RateCap,
    /// The thread was suspended, and the recording does not show by which freeze.
    Suspended,
}

impl Lack {
    /// Returns a description that completes the sentence "the replay lacks …".
    pub fn text(self) -> &'static str {
        match self {
            Lack::Priority => "its priority: no event shows it; record PROC_THREAD",
            Lack::NeverRan => "its demand: it never ran",
            Lack::Doubtful => "context switches: the thread may have run unseen",
            Lack::PagedOut => "the read of its kernel stack from the disk",
            Lack::Affinity => "its affinity: no event shows it; record PROC_THREAD",
            Lack::AffinityChanges => "the changes of its affinity",
            Lack::RateCap => "the cap on the processor time of its group",
            Lack::Suspended => {
                "its suspension: no event shows the freeze; record Microsoft-Windows-Kernel-Process"
            }
        }
    }
}

/// Fact about a recording that limits predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The focus was not recorded, and boosts and quanta do not show it.
    NoFocus,
    /// The recording does not show the quanta, so the replay has the default quanta of the edition.
    QuantaUnknown,
    /// The recording does not show whether Windows is a server edition, so the replay has the defaults of a client.
    EditionUnknown,
    /// On this build, measured time slices were shorter than the published quanta.
    SlicesDoubted,
    /// On this build, requests for a timer resolution count for all programs, but not in the replay.
    SharedTimer,
    /// On this build, a value of the registry can make requests for a timer resolution count for all programs.
    GlobalTimer,
    /// Programs had one rank above 0 without interruption, as programs in the background have. It is kept.
    Ranks,
    /// Ranks of programs changed with their use of the processors.
    RanksMove,
    /// Number of waits that packets, input or devices ended. The replay keeps the times of these ends.
    OpenArrivals(u64),
    /// Number of threads whose requested sleeps are known only to within one clock tick.
    VariedSleeps(u64),
    /// Number of interrupts without a known start.
    DamagedRoutines(u64),
}

impl Note {
    /// Returns a sentence about the fact.
    pub fn text(self) -> String {
        match self {
            Note::NoFocus => "The focus was not recorded, so no program has the longer quanta and the boost of the focus \
                              in the replay; record the provider Microsoft-Windows-Win32k."
                .to_owned(),
            Note::QuantaUnknown => {
                "The recording shows no quanta of a setting, so they are assumed to be the default of the edition."
                    .to_owned()
            }
            Note::EditionUnknown => {
                "The edition of Windows was not recorded; it is assumed to be a client.".to_owned()
            }
            Note::SlicesDoubted => {
                "On this build of Windows, measured time slices were shorter than the published quanta; the rule is not \
                 documented."
                    .to_owned()
            }
            Note::SharedTimer => {
                "On this build of Windows, a request for a timer resolution counts for all programs; in the replay, it \
                 counts only for the program that made it."
                    .to_owned()
            }
            Note::GlobalTimer => {
                "The replay assumes that the registry value GlobalTimerResolutionRequests is not set, so that a request for \
                 a timer resolution counts only for the program that made it. The trace does not contain this value."
                    .to_owned()
            }
            Note::Ranks => {
                "Ranks of scheduling groups stay as recorded, whatever the change does to the use of the processors."
                    .to_owned()
            }
            Note::RanksMove => {
                "Ranks of scheduling groups changed during the recording, by a formula that is not documented."
                    .to_owned()
            }
            Note::OpenArrivals(count) => format!(
                "{count} waits ended because of packets, input or devices; these arrive at their recorded times."
            ),
            Note::VariedSleeps(count) => format!(
                "The requested sleeps of {count} threads are known only to within one clock tick."
            ),
            Note::DamagedRoutines(count) => {
                format!("{count} interrupts without a known start are left out.")
            }
        }
    }
}

/// Reason why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The trace has no processors with context switches.
    #[error("the trace has no context switches; record CSWITCH")]
    NoSwitches,
    /// No thread was readied.
    #[error(
        "the trace does not show when threads became ready, so it is unknown who woke them; record DISPATCHER \
         (ReadyThread events)"
    )]
    NoReadyEvents,
    /// A needed kind of event was not enabled.
    #[error("the trace lacks events that a replay needs; record {0}")]
    NotEnabled(&'static str),
    /// Events are lost or unreadable.
    #[error(
        "the trace has a loss or fault ({0}), and a replay across it would be wrong; record with more or larger buffers"
    )]
    Lost(String),
    /// Parts of the events of some processors are missing.
    #[error(
        "the trace has not all events of each processor from its start to its end; cut it to the complete time with \
         laglab trim"
    )]
    Partial,
    /// The machine has too many processors.
    #[error("the machine has {0} processors; only machines with at most 64 can be replayed")]
    Cpus(usize),
    /// The build of Windows is unknown.
    #[error(
        "the header of the trace does not name the build of Windows, on which the rules of the scheduler depend"
    )]
    BuildUnknown,
    /// The build of Windows is older than all releases in the model.
    #[error(
        "the trace is of build {0} of Windows; only Windows 7 (build 7600) and later are in the model"
    )]
    Build(u32),
    /// The trace is a recording of Linux.
    #[error(
        "the trace was recorded on Linux, whose fair scheduler is not in the model; only Windows can be replayed"
    )]
    Linux,
}
