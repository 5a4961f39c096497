//! Kinds of data in a trace, and the questions that the trace cannot answer.

use std::collections::BTreeMap;

use events::event_source::MANIFEST_EVENT_ID;
use events::ids::hook;
use events::ids::provider::WIN32K;
use record::Kind;
use serde::Serialize;
use tables::{EventFormat, Named};

use crate::fact_rows::KindRow;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Context switches (Thread CSwitch). Switches in the compact form are included.
    ContextSwitches,
    /// Events that ready a thread (Thread ReadyThread).
    ReadyThreads,
    /// CPU samples (PerfInfo SampledProfile). Samples in the cached form are included.
    Samples,
    /// Samples of performance counters.
    CounterSamples,
    /// DPCs of all kinds.
    Dpcs,
    /// ISRs of all kinds.
    Isrs,
    /// Stacks, as separate events or inside other events.
    Stacks,
    /// Changes of thread priorities.
    Priorities,
    /// Starts and ends of processes, and lists of existing processes.
    Processes,
    /// Starts and ends of threads, and lists of existing threads.
    Threads,
    /// Loads and unloads of images, and lists of loaded images.
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
    /// Soft page faults and allocations of memory.
    Memory,
    /// Packets sent and received.
    Network,
    /// Registry operations.
    Registry,
    /// System calls.
    SystemCalls,
    /// Power states of the CPU.
    Power,
    /// Configuration of the machine.
    SystemConfiguration,
    /// All other kernel events.
    OtherKernel,
    /// Events of providers with a manifest.
    ManifestEvents,
    /// Events of TraceLogging, which contain their own description.
    TraceLogging,
    /// WPP messages: text messages of drivers and services.
    WppMessages,
    /// Classic events whose class does not belong to the kernel.
    ClassicEvents,
    /// Descriptions of events in the trace.
    EventMetadata,
}

impl Data {
    /// Returns the name of the kind of data for output.
    pub fn name(self, count: u64) -> &'static str {
        let (one, many) = match self {
            Data::ContextSwitches => ("context switch", "context switches"),
            Data::ReadyThreads => ("ready thread", "ready threads"),
            Data::Samples => ("CPU sample", "CPU samples"),
            Data::CounterSamples => ("counter sample", "counter samples"),
            Data::Dpcs => ("DPC", "DPCs"),
            Data::Isrs => ("ISR", "ISRs"),
            Data::Stacks => ("stack", "stacks"),
            Data::Priorities => ("priority change", "priority changes"),
            Data::Processes => ("process event", "process events"),
            Data::Threads => ("thread event", "thread events"),
            Data::Images => ("image event", "image events"),
            Data::ImageIds => ("image identity event", "image identity events"),
            Data::DiskIo => ("disk I/O event", "disk I/O events"),
            Data::FileIo => ("file operation", "file operations"),
            Data::FileNames => ("file name", "file names"),
            Data::HardFaults => ("hard fault", "hard faults"),
            Data::Memory => ("memory event", "memory events"),
            Data::Network => ("network event", "network events"),
            Data::Registry => ("registry event", "registry events"),
            Data::SystemCalls => ("system call", "system calls"),
            Data::Power => ("power state event", "power state events"),
            Data::SystemConfiguration => {
                ("system configuration event", "system configuration events")
            }
            Data::OtherKernel => ("other kernel event", "other kernel events"),
            Data::ManifestEvents => ("manifest event", "manifest events"),
            Data::TraceLogging => ("TraceLogging event", "TraceLogging events"),
            Data::WppMessages => ("WPP message", "WPP messages"),
            Data::ClassicEvents => ("other classic event", "other classic events"),
            Data::EventMetadata => ("event description", "event descriptions"),
        };
        match count {
            1 => one,
            _ => many,
        }
    }

    /// Returns the name of the events that record this kind of data. For some kinds, the name begins with "events
    /// of", because "no DPCs", for example, could mean that no DPC ran.
    fn events(self) -> String {
        let name = self.name(0);
        match self {
            Data::ContextSwitches
            | Data::ReadyThreads
            | Data::Dpcs
            | Data::Isrs
            | Data::FileIo
            | Data::HardFaults => format!("events of {name}"),
            _ => name.to_owned(),
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

    /// Returns the kind of data to which a kind of events belongs. Returns `None` if the events are in none
    /// of the known formats.
    fn from_kind(kind: &KindRow) -> Option<Data> {
        let is = |format: EventFormat| kind.format == format.name();
        match kind.hook {
            Some(hook) => Data::from_hook(hook),
            None if is(EventFormat::Classic) => Some(match kind.class.as_deref() {
                Some("ImageId") => Data::ImageIds,
                Some("EventMetadata" | "PerfTrackMetadata") => Data::EventMetadata,
                Some("SysConfigEx" | "WinSat") => Data::SystemConfiguration,
                Some(_) => Data::OtherKernel,
                None => Data::ClassicEvents,
            }),
            None if is(EventFormat::Tracelogging) => Some(Data::TraceLogging),
            None if is(EventFormat::Wpp) => Some(Data::WppMessages),
            None if is(EventFormat::Tracepoint) => Some(Data::from_tracepoint(kind)),
            None if is(EventFormat::PerfEvent) => Some(match kind.event.as_deref() {
                Some(name) if name.starts_with("major-faults") => Data::HardFaults,
                Some(name) if name.contains("faults") => Data::Memory,
                _ => Data::Samples,
            }),
            None if is(EventFormat::Manifest) => Some(match kind.id {
                Some(MANIFEST_EVENT_ID) => Data::EventMetadata,
                _ => Data::ManifestEvents,
            }),
            None => None,
        }
    }

    /// Returns the kind of data of a tracepoint of Linux.
    fn from_tracepoint(kind: &KindRow) -> Data {
        match kind.event.as_deref() {
            Some("sched_switch") => Data::ContextSwitches,
            Some("sched_waking" | "sched_wakeup" | "sched_wakeup_new") => Data::ReadyThreads,
            Some("sched_process_exec") => Data::Processes,
            Some("task_newtask" | "task_rename" | "sched_process_exit") => Data::Threads,
            Some("sched_pi_setprio" | "sched_migrate_task") => Data::Priorities,
            Some("cpu_idle") => Data::Power,
            Some("page_fault_user" | "page_fault_kernel") => Data::Memory,
            Some("block_bio_queue" | "block_rq_issue" | "block_rq_complete") => Data::DiskIo,
            _ => Data::OtherKernel,
        }
    }

    fn from_hook(hook: u16) -> Option<Data> {
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

/// Number of events of a kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Content {
    /// Kind of the data.
    pub data: Data,
    /// Number of events. The number of stacks includes stacks inside other events.
    pub count: u64,
}

/// Returns the kinds of data in a trace.
pub(crate) fn contents(kinds: &[KindRow]) -> Vec<Content> {
    let mut counts: BTreeMap<Data, u64> = BTreeMap::new();
    for kind in kinds {
        if let Some(data) = Data::from_kind(kind) {
            *counts.entry(data).or_default() += kind.count;
        }
        if kind.stacks > 0 {
            *counts.entry(Data::Stacks).or_default() += kind.stacks;
        }
    }
    let counts = counts.into_iter();
    counts
        .map(|(data, count)| Content { data, count })
        .collect()
}

/// A question that the trace cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnansweredQuestion {
    /// Question that the trace cannot answer.
    pub question: &'static str,
    /// Reason why the trace cannot answer the question.
    pub reason: String,
    /// Advice for the user: the data to record.
    pub advice: String,
}

/// A question, and the data that is necessary to answer it.
struct Question {
    question: &'static str,
    /// Data that is necessary for the answer.
    needs: Data,
    /// Way to record the data.
    record: Record,
}

/// Way to record a kind of data.
enum Record {
    /// Kinds of events to record.
    Kinds(&'static [Kind]),
    /// Other advice for the user.
    Other(&'static str),
}

const fn question(question: &'static str, needs: Data, kinds: &'static [Kind]) -> Question {
    Question {
        question,
        needs,
        record: Record::Kinds(kinds),
    }
}

const QUESTIONS: &[Question] = &[
    question(
        "which threads ran on which CPU, exactly",
        Data::ContextSwitches,
        &[Kind::ContextSwitches],
    ),
    question(
        "how long ready threads waited for a CPU",
        Data::ReadyThreads,
        &[Kind::ReadyThreads],
    ),
    question("which code used the CPU", Data::Samples, &[Kind::Samples]),
    question(
        "how long DPCs kept CPUs from threads",
        Data::Dpcs,
        &[Kind::Dpcs],
    ),
    question(
        "how long interrupts kept CPUs from threads",
        Data::Isrs,
        &[Kind::ServiceRoutines],
    ),
    question(
        "the callers of code",
        Data::Stacks,
        &[Kind::SampleStacks, Kind::SwitchStacks, Kind::ReadyStacks],
    ),
    question(
        "the names of processes",
        Data::Processes,
        &[Kind::Processes],
    ),
    question("the modules of addresses", Data::Images, &[Kind::Images]),
    Question {
        question: "the names of functions",
        needs: Data::ImageIds,
        record: Record::Other(
            "stop with `wpr -stop` or merge with `xperf -d` on the recorded machine, which adds \
             the identities of images",
        ),
    },
    question(
        "what disks did",
        Data::DiskIo,
        &[Kind::DiskRequests, Kind::DiskStarts],
    ),
    question(
        "which file operations took long",
        Data::FileIo,
        &[Kind::FileOperations, Kind::FileStarts],
    ),
    question(
        "which threads waited for pages from disk",
        Data::HardFaults,
        &[Kind::HardFaults],
    ),
    question("what the network did", Data::Network, &[Kind::Traffic]),
];

/// Returns the questions that the trace cannot answer. Questions that need missing rundowns are included.
pub(crate) fn missing(
    kinds: &[KindRow],
    contents: &[Content],
    is_linux: bool,
) -> Vec<UnansweredQuestion> {
    let has = |data: Data| contents.iter().any(|c| c.data == data);
    if is_linux {
        return missing_of_linux(kinds, contents);
    }
    if !contents.iter().any(|c| c.data.is_of_the_kernel()) {
        return vec![UnansweredQuestion {
            question: "anything about CPUs, processes, disks, files, memory or the network",
            reason: "the trace has no kernel events, only events of providers".to_owned(),
            advice: "record the kernel too: `wpr -start CPU -start DiskIO -start FileIO`"
                .to_owned(),
        }];
    }
    let mut missing: Vec<UnansweredQuestion> = QUESTIONS
        .iter()
        .filter(|question| !has(question.needs))
        .map(|question| UnansweredQuestion {
            question: question.question,
            reason: format!("the trace has no {}", question.needs.events()),
            advice: match question.record {
                Record::Kinds(kinds) => format!("record {}", record::advice(kinds)),
                Record::Other(advice) => advice.to_owned(),
            },
        })
        .collect();
    let win32k = WIN32K.to_string();
    let is_win32k = |kind: &KindRow| kind.provider_guid.as_deref() == Some(win32k.as_str());
    if !kinds.iter().any(is_win32k) {
        missing.push(UnansweredQuestion {
            question: "which window had the focus, and when a window did not respond",
            reason: "the trace has no events of Microsoft-Windows-Win32k".to_owned(),
            advice: format!("record {}", record::advice(&[Kind::Focus])),
        });
    }
    missing.extend(missing_rundown(kinds));
    missing
}

/// Returns the questions that a recording of Linux cannot answer.
fn missing_of_linux(kinds: &[KindRow], contents: &[Content]) -> Vec<UnansweredQuestion> {
    let has = |data: Data| contents.iter().any(|c| c.data == data);
    let of_interrupts =
        |kind: &KindRow| matches!(kind.provider.as_deref(), Some("irq" | "irq_vectors"));
    let questions = [
        (
            "which threads ran on which CPU, exactly",
            has(Data::ContextSwitches),
            "context switches",
            "cpu-use",
        ),
        (
            "how long ready threads waited for a CPU",
            has(Data::ReadyThreads),
            "wakes",
            "long-waits",
        ),
        (
            "how long interrupts and softirqs kept CPUs from threads",
            kinds.iter().any(of_interrupts),
            "interrupts and softirqs",
            "interrupted-cpus",
        ),
        (
            "which functions used the CPUs",
            has(Data::Samples),
            "samples",
            "samples",
        ),
        (
            "how long disks took for requests",
            has(Data::DiskIo),
            "disk requests",
            "disks",
        ),
        (
            "how long threads waited for pages from disk",
            has(Data::HardFaults),
            "hard faults",
            "hard-faults",
        ),
    ];
    let open = questions.into_iter().filter(|(_, is_there, ..)| !is_there);
    open.map(|(question, _, data, theory)| UnansweredQuestion {
        question,
        reason: format!("the recording has no {data}"),
        advice: format!(
            "record {}",
            record::linux::for_theory(theory)
                .map(ToString::to_string)
                .unwrap_or_default()
        ),
    })
    .collect()
}

/// Returns the questions that need missing rundowns. Without rundowns, processes, images and stacks from
/// before the recording are unknown.
fn missing_rundown(kinds: &[KindRow]) -> Vec<UnansweredQuestion> {
    let has = |hooks: &[u16]| {
        let mut hooks_of_kinds = kinds.iter().filter_map(|kind| kind.hook);
        hooks_of_kinds.any(|hook| hooks.contains(&hook))
    };
    const ADVICE: &str = "stop the session with the recording tool (`wpr -stop`, `xperf -stop`), \
                          which waits for the rundown";
    let mut missing = Vec::new();
    for (question, of, rundown, reason) in [
        (
            "names of processes that already ran when the recording began",
            &[hook::PROCESS_START, hook::PROCESS_END][..],
            &[hook::PROCESS_DC_START, hook::PROCESS_DC_END][..],
            "processes start and end, but no rundown lists the processes that already ran",
        ),
        (
            "modules that were already loaded when the recording began",
            &[
                hook::IMAGE_UNLOAD,
                hook::IMAGE_LOAD,
                hook::PROCESS_LOAD_IMAGE,
            ],
            &[hook::IMAGE_DC_START, hook::IMAGE_DC_END],
            "images are loaded and unloaded, but no rundown lists the images that were already loaded",
        ),
        (
            "frames of the stacks that are logged by key",
            &[hook::STACK_KEY_KERNEL, hook::STACK_KEY_USER],
            &[hook::STACK_KEY_DELETE, hook::STACK_KEY_RUNDOWN],
            "stacks are logged by key, but no rundown contains the frames of the keys",
        ),
    ] {
        if has(of) && !has(rundown) {
            missing.push(UnansweredQuestion {
                question,
                reason: reason.to_owned(),
                advice: ADVICE.to_owned(),
            });
        }
    }
    missing
}
