//! Kinds of events, and the option of a recorder that records each kind.

use crate::{Keyword, Provider, StackWalk};

/// A kind of events that theories and tables use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Starts, ends and lists of processes and threads.
    Processes,
    /// Loads, unloads and lists of images.
    Images,
    /// Groups and NUMA nodes of processors.
    CpuConfig,
    /// Context switches.
    ContextSwitches,
    /// Threads made ready.
    ReadyThreads,
    /// Priority changes.
    Priorities,
    /// CPU samples.
    Samples,
    /// DPCs.
    Dpcs,
    /// Interrupt service routines.
    ServiceRoutines,
    /// Completed disk requests.
    DiskRequests,
    /// Started disk requests.
    DiskStarts,
    /// File names.
    FileNames,
    /// Completed file operations.
    FileOperations,
    /// Started file operations.
    FileStarts,
    /// Hard page faults.
    HardFaults,
    /// Data sent and received by TCP and UDP.
    Traffic,
    /// Sleep, resume and performance states from the kernel session.
    PowerStates,
    /// Stacks of context switches.
    SwitchStacks,
    /// Stacks of the code that made threads ready.
    ReadyStacks,
    /// Stacks of samples.
    SampleStacks,
    /// Stacks of disk reads.
    DiskReadStacks,
    /// Stacks of disk writes.
    DiskWriteStacks,
    /// Stacks of hard page faults.
    FaultStacks,
    /// Changes of the process in focus.
    Focus,
    /// Processes that Windows freezes and thaws.
    Freezes,
    /// Requests for timer resolutions, sleep and resume.
    TimerRequests,
    /// Network packets.
    Packets,
    /// Times at which .NET stops the threads of programs.
    DotnetPauses,
    /// Numbers of threads in the thread pools of .NET.
    DotnetPools,
    /// Times of user input.
    Input,
}

/// Option of a recorder that records a kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordedBy {
    /// A keyword of the kernel session.
    Kernel(Keyword),
    /// Stacks of an event. The keyword that records the event is also necessary.
    Stack(StackWalk),
    /// A provider, and the keywords that must be enabled. A keyword mask of 0 means that no particular
    /// keyword is necessary.
    Provider(Provider, u64),
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 30] = [
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
        Kind::FileOperations,
        Kind::FileStarts,
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
        Kind::DotnetPauses,
        Kind::DotnetPools,
        Kind::Input,
    ];

    /// Returns the name for the user, in the plural.
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
            Kind::ServiceRoutines => "ISRs",
            Kind::DiskRequests => "disk requests",
            Kind::DiskStarts => "starts of disk requests",
            Kind::FileNames => "names of files",
            Kind::FileOperations => "file operations",
            Kind::FileStarts => "starts of file operations",
            Kind::HardFaults => "hard faults",
            Kind::Traffic => "traffic",
            Kind::PowerStates => "power states",
            Kind::SwitchStacks => "stacks of context switches",
            Kind::ReadyStacks => "stacks of the code that made threads ready",
            Kind::SampleStacks => "stacks of samples",
            Kind::DiskReadStacks => "stacks of disk reads",
            Kind::DiskWriteStacks => "stacks of disk writes",
            Kind::FaultStacks => "stacks of hard faults",
            Kind::Focus => "changes of focus",
            Kind::Freezes => "processes frozen and thawed",
            Kind::TimerRequests => "timer requests",
            Kind::Packets => "packets",
            Kind::DotnetPauses => "pauses of .NET",
            Kind::DotnetPools => "thread pools of .NET",
            Kind::Input => "times of input",
        }
    }

    /// Returns the option of a recorder that records the kind. Provider keywords: 0x20000 of
    /// `Microsoft-Windows-Win32k` is `UserActivity`, and UIforETW enables 0x2000 with it. 0x200 of
    /// `Microsoft-Windows-Kernel-Process` is `PROCESS_FREEZE`. 0x1 of `Microsoft-Windows-DotNETRuntime` is
    /// `GC`, and 0x10000 is `Threading`.
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
            Kind::FileOperations => Kernel(Keyword::FileIo),
            Kind::FileStarts => Kernel(Keyword::FileIoInit),
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
            Kind::DotnetPauses => RecordedBy::Provider(Provider::DotNet, 0x1),
            Kind::DotnetPools => RecordedBy::Provider(Provider::DotNet, 0x1_0000),
            Kind::Input => RecordedBy::Provider(Provider::Input, 0),
        }
    }

    /// Returns the built-in profile of WPR that records the kind, if any.
    pub fn wpr_profile(self) -> Option<&'static str> {
        match self {
            Kind::Processes
            | Kind::Images
            | Kind::CpuConfig
            | Kind::ContextSwitches
            | Kind::ReadyThreads
            | Kind::Samples
            | Kind::Dpcs
            | Kind::ServiceRoutines
            | Kind::SwitchStacks
            | Kind::ReadyStacks
            | Kind::SampleStacks => Some("CPU"),
            Kind::DiskRequests | Kind::DiskStarts => Some("DiskIO"),
            Kind::FileNames | Kind::FileOperations | Kind::FileStarts => Some("FileIO"),
            Kind::HardFaults => Some("GeneralProfile"),
            Kind::Traffic => Some("Network"),
            Kind::Priorities
            | Kind::PowerStates
            | Kind::DiskReadStacks
            | Kind::DiskWriteStacks
            | Kind::FaultStacks
            | Kind::Focus
            | Kind::Freezes
            | Kind::TimerRequests
            | Kind::Packets
            | Kind::DotnetPauses
            | Kind::DotnetPools
            | Kind::Input => None,
        }
    }
}
