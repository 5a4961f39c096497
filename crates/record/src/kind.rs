//! Kinds of events, and what records them.

use crate::{Keyword, Provider, StackWalk};

/// A kind of events that theories are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Processes and threads.
    Processes,
    /// Images.
    Images,
    /// Groups and nodes of processors.
    CpuConfig,
    /// Context switches.
    ContextSwitches,
    /// Threads made ready.
    ReadyThreads,
    /// Changes of priorities.
    Priorities,
    /// Samples.
    Samples,
    /// DPCs.
    Dpcs,
    /// Interrupt service routines.
    ServiceRoutines,
    /// Requests to disks, when they are done.
    DiskRequests,
    /// Requests to disks, when they begin.
    DiskStarts,
    /// Names of files.
    FileNames,
    /// Hard page faults.
    HardFaults,
    /// Data sent and received.
    Traffic,
    /// Sleep, resume and performance states, as the kernel logs them.
    PowerStates,
    /// Stacks of context switches.
    SwitchStacks,
    /// Stacks of what made threads ready.
    ReadyStacks,
    /// Stacks of samples.
    SampleStacks,
    /// Stacks of disk reads.
    DiskReadStacks,
    /// Stacks of disk writes.
    DiskWriteStacks,
    /// Stacks of hard page faults.
    FaultStacks,
    /// Which process has the focus.
    Focus,
    /// Processes frozen and thawed.
    Freezes,
    /// Requests for timer resolutions, sleep and resume.
    TimerRequests,
    /// Packets.
    Packets,
    /// Times of the user's input.
    Input,
}

/// What records a kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordedBy {
    /// A keyword of the kernel's session.
    Kernel(Keyword),
    /// Walking the stacks of its events, beside the keyword of these.
    Stack(StackWalk),
    /// A provider, with at least these keywords; 0 where it needs no particular one.
    Provider(Provider, u64),
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 26] = [
        Kind::Processes,
        Kind::Images,
        Kind::CpuConfig,
        Kind::ContextSwitches,
        Kind::ReadyThreads,
        Kind::Priorities,
        Kind::Samples,
        Kind::Dpcs,
        Kind::ServiceRoutines,
        Kind::DiskRequests,
        Kind::DiskStarts,
        Kind::FileNames,
        Kind::HardFaults,
        Kind::Traffic,
        Kind::PowerStates,
        Kind::SwitchStacks,
        Kind::ReadyStacks,
        Kind::SampleStacks,
        Kind::DiskReadStacks,
        Kind::DiskWriteStacks,
        Kind::FaultStacks,
        Kind::Focus,
        Kind::Freezes,
        Kind::TimerRequests,
        Kind::Packets,
        Kind::Input,
    ];

    /// What it is called, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Processes => "processes and threads",
            Kind::Images => "images",
            Kind::CpuConfig => "groups and nodes of processors",
            Kind::ContextSwitches => "context switches",
            Kind::ReadyThreads => "threads made ready",
            Kind::Priorities => "changes of priorities",
            Kind::Samples => "samples",
            Kind::Dpcs => "DPCs",
            Kind::ServiceRoutines => "service routines",
            Kind::DiskRequests => "disk requests",
            Kind::DiskStarts => "beginnings of disk requests",
            Kind::FileNames => "names of files",
            Kind::HardFaults => "hard faults",
            Kind::Traffic => "traffic",
            Kind::PowerStates => "power states",
            Kind::SwitchStacks => "stacks of context switches",
            Kind::ReadyStacks => "stacks of what made threads ready",
            Kind::SampleStacks => "stacks of samples",
            Kind::DiskReadStacks => "stacks of disk reads",
            Kind::DiskWriteStacks => "stacks of disk writes",
            Kind::FaultStacks => "stacks of hard faults",
            Kind::Focus => "changes of focus",
            Kind::Freezes => "processes frozen and thawed",
            Kind::TimerRequests => "timer requests",
            Kind::Packets => "packets",
            Kind::Input => "times of input",
        }
    }

    /// What records it. Keywords of providers: `Microsoft-Windows-Win32k` 0x20000 is `UserActivity`,
    /// and 0x2000 goes with it in UIforETW; `Microsoft-Windows-Kernel-Process` 0x200 is
    /// `PROCESS_FREEZE`.
    pub fn recorded_by(self) -> RecordedBy {
        use RecordedBy::{Kernel, Stack};
        match self {
            Kind::Processes => Kernel(Keyword::ProcessThread),
            Kind::Images => Kernel(Keyword::Loader),
            Kind::CpuConfig => Kernel(Keyword::CpuConfig),
            Kind::ContextSwitches => Kernel(Keyword::CSwitch),
            Kind::ReadyThreads => Kernel(Keyword::ReadyThread),
            Kind::Priorities => Kernel(Keyword::ThreadPriority),
            Kind::Samples => Kernel(Keyword::SampledProfile),
            Kind::Dpcs => Kernel(Keyword::Dpc),
            Kind::ServiceRoutines => Kernel(Keyword::Interrupt),
            Kind::DiskRequests => Kernel(Keyword::DiskIo),
            Kind::DiskStarts => Kernel(Keyword::DiskIoInit),
            Kind::FileNames => Kernel(Keyword::FileName),
            Kind::HardFaults => Kernel(Keyword::HardFaults),
            Kind::Traffic => Kernel(Keyword::NetworkTrace),
            Kind::PowerStates => Kernel(Keyword::Power),
            Kind::SwitchStacks => Stack(StackWalk::CSwitch),
            Kind::ReadyStacks => Stack(StackWalk::ReadyThread),
            Kind::SampleStacks => Stack(StackWalk::SampledProfile),
            Kind::DiskReadStacks => Stack(StackWalk::DiskReadInit),
            Kind::DiskWriteStacks => Stack(StackWalk::DiskWriteInit),
            Kind::FaultStacks => Stack(StackWalk::HardFault),
            Kind::Focus => RecordedBy::Provider(Provider::Win32k, 0x2_2000),
            Kind::Freezes => RecordedBy::Provider(Provider::KernelProcess, 0x200),
            Kind::TimerRequests => RecordedBy::Provider(Provider::KernelPower, 0),
            Kind::Packets => RecordedBy::Provider(Provider::PacketCapture, 0),
            Kind::Input => RecordedBy::Provider(Provider::Input, 0),
        }
    }
}
