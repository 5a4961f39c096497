//! What kinds of data a trace holds, and which questions it can therefore answer.

use etl::Guid;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::key::Key;
use crate::survey::{Count, Survey};

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Data {
    /// Thread CSwitch, also compact ones.
    ContextSwitches,
    /// Thread ReadyThread.
    ReadyThreads,
    /// PerfInfo SampledProfile and its cached form.
    Samples,
    /// Samples of performance counters.
    CounterSamples,
    /// DPCs of all sorts.
    Dpcs,
    /// ISRs of all sorts.
    Isrs,
    /// Stacks: events of their own and inside events.
    Stacks,
    /// Thread priority changes.
    Priorities,
    /// Processes that began, ended or were there.
    Processes,
    /// Threads that began, ended or were there.
    Threads,
    /// Images loaded, unloaded or there.
    Images,
    /// Identities of images and their symbols.
    ImageIds,
    /// Disk reads, writes and flushes.
    DiskIo,
    /// File operations.
    FileIo,
    /// Names of files.
    FileNames,
    /// Hard page faults.
    HardFaults,
    /// Memory: soft faults, allocations.
    Memory,
    /// Packets sent and received.
    Network,
    /// Registry operations.
    Registry,
    /// System calls.
    SystemCalls,
    /// Power states of the CPU.
    Power,
    /// The machine's configuration.
    SystemConfiguration,
    /// Other kernel events.
    OtherKernel,
    /// Events of providers with a manifest.
    ManifestEvents,
    /// Events that describe themselves.
    TraceLogging,
    /// Text messages of drivers and services.
    WppMessages,
    /// Classic events of other than the kernel's classes.
    ClassicEvents,
    /// Descriptions of events, written into the trace.
    EventMetadata,
}

impl Data {
    /// What it is called for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Data::ContextSwitches => "context switches",
            Data::ReadyThreads => "ready threads",
            Data::Samples => "CPU samples",
            Data::CounterSamples => "counter samples",
            Data::Dpcs => "DPCs",
            Data::Isrs => "ISRs",
            Data::Stacks => "stacks",
            Data::Priorities => "priority changes",
            Data::Processes => "process events",
            Data::Threads => "thread events",
            Data::Images => "image events",
            Data::ImageIds => "image identity events",
            Data::DiskIo => "disk I/O events",
            Data::FileIo => "file operations",
            Data::FileNames => "file names",
            Data::HardFaults => "hard faults",
            Data::Memory => "memory events",
            Data::Network => "network events",
            Data::Registry => "registry events",
            Data::SystemCalls => "system calls",
            Data::Power => "power state events",
            Data::SystemConfiguration => "system configuration events",
            Data::OtherKernel => "other kernel events",
            Data::ManifestEvents => "manifest events",
            Data::TraceLogging => "TraceLogging events",
            Data::WppMessages => "WPP messages",
            Data::ClassicEvents => "other classic events",
            Data::EventMetadata => "event descriptions",
        }
    }

    fn is_of_the_kernel(self) -> bool {
        !matches!(
            self,
            Data::ManifestEvents
                | Data::TraceLogging
                | Data::WppMessages
                | Data::ClassicEvents
                | Data::EventMetadata
                | Data::ImageIds
                | Data::SystemConfiguration
        )
    }

    /// The kind of data that events of this kind are; `None` for those that only frame others.
    fn of(key: &Key) -> Option<Data> {
        match key {
            Key::Kernel { hook, .. } => Data::of_hook(*hook),
            Key::Classic { guid, opcode, .. } => match events::kernel::Class::of_guid(*guid) {
                Some(class) => match (class.group, class.name) {
                    (Some(group), _) => Data::of_hook(u16::from_be_bytes([group, *opcode])),
                    (None, "ImageId") => Some(Data::ImageIds),
                    (None, "EventMetadata" | "PerfTrackMetadata") => Some(Data::EventMetadata),
                    (None, "SysConfigEx" | "WinSat") => Some(Data::SystemConfiguration),
                    (None, _) => Some(Data::OtherKernel),
                },
                None => Some(Data::ClassicEvents),
            },
            Key::Provider {
                tracelogging: Some(_),
                ..
            } => Some(Data::TraceLogging),
            Key::Provider { id: 0xFFFE, .. } => Some(Data::EventMetadata),
            Key::Provider { .. } => Some(Data::ManifestEvents),
            Key::Message { .. } => Some(Data::WppMessages),
            Key::Bare(_) | Key::Further => None,
        }
    }

    fn of_hook(hook: u16) -> Option<Data> {
        let [group, opcode] = hook.to_be_bytes();
        Some(match (group, opcode) {
            (0x00, _) => return None,
            (0x01, 10..=16 | 55..=60) => Data::DiskIo,
            (0x02, 32) => Data::HardFaults,
            (0x02, _) => Data::Memory,
            (0x03, 10) => Data::Images,
            (0x03, 1..=4 | 11 | 39) => Data::Processes,
            (0x04, 0 | 32 | 35 | 36) => Data::FileNames,
            (0x04, _) => Data::FileIo,
            (0x05, 36 | 37) => Data::ContextSwitches,
            (0x05, 50) => Data::ReadyThreads,
            (0x05, 1..=4 | 72) => Data::Threads,
            (0x05, 48 | 49 | 60 | 66 | 67) => Data::Priorities,
            (0x06 | 0x08, _) => Data::Network,
            (0x09, _) => Data::Registry,
            (0x0B, _) => Data::SystemConfiguration,
            (0x0F, 46 | 55) => Data::Samples,
            (0x0F, 47) => Data::CounterSamples,
            (0x0F, 66 | 68 | 69 | 98) => Data::Dpcs,
            (0x0F, 50 | 67 | 92 | 95 | 96 | 97) => Data::Isrs,
            (0x0F, 51 | 52) => Data::SystemCalls,
            (0x12, _) => Data::Power,
            (0x14, 2..=4 | 10) => Data::Images,
            (0x18, _) => Data::Stacks,
            _ => Data::OtherKernel,
        })
    }
}

/// How many events there are of a kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Content {
    /// The kind of data.
    pub(crate) data: Data,
    /// Events; of stacks also those inside other events.
    pub(crate) count: u64,
}

/// The kinds of data that are there.
pub(crate) fn contents(survey: &Survey) -> Vec<Content> {
    let mut counts = FxHashMap::default();
    for (key, count) in &survey.kinds {
        if let Some(data) = Data::of(key) {
            *counts.entry(data).or_insert(0) += count.events;
        }
    }
    let carried: u64 = [5, 6, 17, 18]
        .iter()
        .filter_map(|ext_type| survey.extended_items.get(ext_type))
        .sum();
    if carried > 0 {
        *counts.entry(Data::Stacks).or_insert(0) += carried;
    }
    let mut contents: Vec<Content> = counts
        .into_iter()
        .map(|(data, count)| Content { data, count })
        .collect();
    contents.sort_by_key(|c| c.data);
    contents
}

/// A question that the trace cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    /// The question.
    pub(crate) question: &'static str,
    /// Why it has no answer.
    pub(crate) reason: String,
    /// What to record for one.
    pub(crate) advice: &'static str,
}

/// A question, the data that any answer needs one of, and how to record it.
struct Question {
    question: &'static str,
    needs: &'static [Data],
    advice: &'static str,
}

const QUESTIONS: &[Question] = &[
    Question {
        question: "who ran on which CPU, exactly",
        needs: &[Data::ContextSwitches],
        advice: "record the CSwitch keyword: `wpr -start CPU` or `xperf -on PROC_THREAD+LOADER+CSWITCH`",
    },
    Question {
        question: "how long ready threads waited for a CPU",
        needs: &[Data::ReadyThreads],
        advice: "record the ReadyThread keyword: `wpr -start CPU` or `xperf -on …+CSWITCH+DISPATCHER`",
    },
    Question {
        question: "which code used the CPU",
        needs: &[Data::Samples],
        advice: "record the SampledProfile keyword: `wpr -start CPU` or `xperf -on …+PROFILE`",
    },
    Question {
        question: "how long DPCs kept CPUs from threads",
        needs: &[Data::Dpcs],
        advice: "record the DPC keyword: `wpr -start CPU` or `xperf -on …+DPC`",
    },
    Question {
        question: "how long interrupts kept CPUs from threads",
        needs: &[Data::Isrs],
        advice: "record the Interrupt keyword: `wpr -start CPU` or `xperf -on …+INTERRUPT`",
    },
    Question {
        question: "from where code was called",
        needs: &[Data::Stacks],
        advice: "record stacks: `wpr -start CPU` or `xperf … -stackwalk Profile+CSwitch+ReadyThread`",
    },
    Question {
        question: "the names of processes",
        needs: &[Data::Processes],
        advice: "record the ProcessThread keyword: every `wpr` profile does; `xperf -on PROC_THREAD`",
    },
    Question {
        question: "the modules of addresses",
        needs: &[Data::Images],
        advice: "record the Loader keyword: every `wpr` profile does; `xperf -on …+LOADER`",
    },
    Question {
        question: "the names of functions",
        needs: &[Data::ImageIds],
        advice: "stop with `wpr -stop` or merge with `xperf -d` on the recorded machine, which adds \
                 the identities of images",
    },
    Question {
        question: "what disks did",
        needs: &[Data::DiskIo],
        advice: "record the DiskIO keyword: `wpr -start DiskIO` or `xperf -on …+DISK_IO+DISK_IO_INIT`",
    },
    Question {
        question: "which file operations took long",
        needs: &[Data::FileIo],
        advice: "record the FileIO keyword: `wpr -start FileIO` or `xperf -on …+FILE_IO+FILE_IO_INIT`",
    },
    Question {
        question: "who waited for memory to be paged in",
        needs: &[Data::HardFaults],
        advice: "record the HardFaults keyword: `wpr -start GeneralProfile` or `xperf -on …+HARD_FAULTS`",
    },
    Question {
        question: "what the network did",
        needs: &[Data::Network],
        advice: "record the NetworkTrace keyword: `wpr -start Network` or `xperf -on …+NETWORKTRACE`",
    },
];

const WIN32K: Guid = Guid::new(
    0x8c41_6c79,
    0xd49b,
    0x4f01,
    [0xa4, 0x67, 0xe5, 0x6d, 0x3a, 0xa8, 0x23, 0x4c],
);

/// The questions without an answer, and what rundowns lack.
pub(crate) fn missing(survey: &Survey, contents: &[Content]) -> Vec<Missing> {
    let has = |data: Data| contents.iter().any(|c| c.data == data);
    if !contents.iter().any(|c| c.data.is_of_the_kernel()) {
        return vec![Missing {
            question: "anything about CPUs, processes, disks, files, memory or the network",
            reason: "no kernel events; only what single providers said".to_owned(),
            advice: "record the kernel too: `wpr -start CPU -start DiskIO -start FileIO`",
        }];
    }
    let mut missing: Vec<Missing> = QUESTIONS
        .iter()
        .filter(|q| !q.needs.iter().any(|data| has(*data)))
        .map(|q| {
            let needs: Vec<_> = q.needs.iter().map(|d| d.name()).collect();
            Missing {
                question: q.question,
                reason: format!("no {}", needs.join(" or ")),
                advice: q.advice,
            }
        })
        .collect();
    let is_win32k = |key: &Key| matches!(key, Key::Provider { guid, .. } if *guid == WIN32K);
    if !survey.kinds.keys().any(is_win32k) {
        missing.push(Missing {
            question: "which window had the focus, and when it did not answer",
            reason: "no events of Microsoft-Windows-Win32k".to_owned(),
            advice: "enable that provider in the recording profile",
        });
    }
    missing.extend(missing_rundown(&survey.kinds));
    missing
}

/// Rundowns that were cut off: what they list is otherwise known only from the moment it begins.
fn missing_rundown(kinds: &FxHashMap<Key, Count>) -> Vec<Missing> {
    let has = |hooks: &[u16]| {
        kinds.keys().any(|key| match *key {
            Key::Kernel { hook, .. } => hooks.contains(&hook),
            Key::Classic { guid, opcode, .. } => events::kernel::Class::of_guid(guid)
                .and_then(|class| Some(u16::from_be_bytes([class.group?, opcode])))
                .is_some_and(|hook| hooks.contains(&hook)),
            _ => false,
        })
    };
    const ADVICE: &str = "let the recording tool stop the session (`wpr -stop`, `xperf -stop`): it \
                          waits for the rundown";
    let mut missing = Vec::new();
    for (question, of, rundown, reason) in [
        (
            "names of processes that ran all the time",
            &[0x0301, 0x0302][..],
            &[0x0303, 0x0304][..],
            "processes start and end, but no rundown lists those that were there",
        ),
        (
            "modules that were loaded all the time",
            &[0x1402, 0x140A, 0x030A],
            &[0x1403, 0x1404],
            "images are loaded and unloaded, but no rundown lists those that were there",
        ),
        (
            "frames of the stacks that are known by key",
            &[0x1825, 0x1826],
            &[0x1823, 0x1824],
            "stacks are given by key, but no rundown says what the keys stand for",
        ),
    ] {
        if has(of) && !has(rundown) {
            missing.push(Missing {
                question,
                reason: reason.to_owned(),
                advice: ADVICE,
            });
        }
    }
    missing
}
