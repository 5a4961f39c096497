//! Kinds of events: name, option of a recorder that records them, and assumed rate.

use RecorderOption::{Kernel, Provider as Events, Stack};

use crate::{Keyword, Provider, StackWalk};

/// Option of a recorder that records a kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecorderOption {
    /// A keyword of the kernel session.
    Kernel(Keyword),
    /// Stacks of an event. The keyword that records the event is also necessary.
    Stack(StackWalk),
    /// A provider, and the keywords that must be enabled. A keyword mask of 0 means that no particular
    /// keyword is necessary.
    Provider(Provider, u64),
}

/// Events per second and CPU on an idle and on a busy machine, and bytes per event.
pub(crate) struct Rate {
    pub(crate) events: [u64; 2],
    pub(crate) bytes: u64,
}

/// Size of a stack event with 24 frames, in bytes. Averages in public traces are smaller: 87 bytes
/// for stacks of samples (Windows 7), 206 for stacks of context switches (Windows 11). If WPR
/// caches stacks, each repetition of a frequent stack takes only 40 bytes.
const STACK_BYTES: u64 = 32 + 8 * 24;
/// CPU samples per second and CPU.
const SAMPLES: u64 = 1_000;
const SWITCHES: [u64; 2] = [300, 8_000];
const READIED: [u64; 2] = [200, 6_000];
const REQUESTS: [u64; 2] = [5, 1_000];
const OPERATIONS: [u64; 2] = [20, 5_000];
const FAULTS: [u64; 2] = [1, 200];

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal, $recorded_by:expr, $profile:expr, $events:expr, $bytes:expr;)+) => {
        /// A kind of events that theories and tables use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Kind] = &[$(Kind::$kind),+];

            /// Returns the name for the user, in the plural.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)+
                }
            }

            /// Returns the option of a recorder that records the kind.
            pub fn recorded_by(self) -> RecorderOption {
                match self {
                    $(Kind::$kind => $recorded_by,)+
                }
            }

            /// Returns the built-in profile of WPR that records the kind, if any.
            pub fn wpr_profile(self) -> Option<&'static str> {
                match self {
                    $(Kind::$kind => $profile,)+
                }
            }

            pub(crate) fn rate(self) -> Rate {
                match self {
                    $(Kind::$kind => Rate { events: $events, bytes: $bytes },)+
                }
            }
        }
    };
}

// Each line has the name, the option of a recorder, the built-in profile of WPR, events per second and CPU on an idle
// and on a busy machine, and bytes per event. Keywords of providers: 0x20000 of `Microsoft-Windows-Win32k` is
// `UserActivity`, and UIforETW enables 0x2000 with it. 0x200 of `Microsoft-Windows-Kernel-Process` is
// `PROCESS_FREEZE`. 0x1 of `Microsoft-Windows-DotNETRuntime` is `GC`, and 0x10000 is `Threading`.
kinds! {
    /// Starts, ends and lists of processes and threads.
    Processes "processes and threads", Kernel(Keyword::ProcessThread), Some("CPU"), [1, 50], 150;
    /// Loads, unloads and lists of images.
    Images "images", Kernel(Keyword::Loader), Some("CPU"), [1, 50], 150;
    /// Groups and NUMA nodes of processors.
    CpuConfig "groups and nodes of processors", Kernel(Keyword::CpuConfig), Some("CPU"), [1, 50], 150;
    /// Context switches.
    ContextSwitches "context switches", Kernel(Keyword::CSwitch), Some("CPU"), SWITCHES, 44;
    /// Threads made ready.
    ReadyThreads "threads made ready", Kernel(Keyword::ReadyThread), Some("CPU"), READIED, 24;
    /// Priority changes.
    Priorities "changes of priorities", Kernel(Keyword::ThreadPriority), None, [100, 4_000], 28;
    /// CPU samples.
    Samples "samples", Kernel(Keyword::SampledProfile), Some("CPU"), [SAMPLES, SAMPLES], 32;
    /// DPCs.
    Dpcs "DPCs", Kernel(Keyword::Dpc), Some("CPU"), [100, 4_000], 32;
    /// Interrupt service routines.
    ServiceRoutines "ISRs", Kernel(Keyword::Interrupt), Some("CPU"), [100, 4_000], 40;
    /// Completed disk requests.
    DiskRequests "disk requests", Kernel(Keyword::DiskIo), Some("DiskIO"), REQUESTS, 80;
    /// Started disk requests.
    DiskStarts "starts of disk requests", Kernel(Keyword::DiskIoInit), Some("DiskIO"), REQUESTS, 56;
    /// File names.
    FileNames "names of files", Kernel(Keyword::FileName), Some("FileIO"), [1, 100], 200;
    /// Completed file operations.
    FileOperations "file operations", Kernel(Keyword::FileIo), Some("FileIO"), OPERATIONS, 60;
    /// Started file operations.
    FileStarts "starts of file operations", Kernel(Keyword::FileIoInit), Some("FileIO"), OPERATIONS, 90;
    /// Hard page faults.
    HardFaults "hard faults", Kernel(Keyword::HardFaults), Some("GeneralProfile"), FAULTS, 64;
    /// Data sent and received by TCP and UDP.
    Traffic "traffic", Kernel(Keyword::NetworkTrace), Some("Network"), [10, 5_000], 80;
    /// Sleep, resume and performance states from the kernel session.
    PowerStates "power states", Kernel(Keyword::Power), None, [1, 50], 150;
    /// Stacks of context switches.
    SwitchStacks "stacks of context switches", Stack(StackWalk::CSwitch), Some("CPU"), SWITCHES, STACK_BYTES;
    /// Stacks of the code that made threads ready.
    ReadyStacks "stacks of the code that made threads ready", Stack(StackWalk::ReadyThread), Some("CPU"), READIED, STACK_BYTES;
    /// Stacks of samples.
    SampleStacks "stacks of samples", Stack(StackWalk::SampledProfile), Some("CPU"), [SAMPLES, SAMPLES], STACK_BYTES;
    /// Stacks of disk reads.
    DiskReadStacks "stacks of disk reads", Stack(StackWalk::DiskReadInit), None, REQUESTS, STACK_BYTES;
    /// Stacks of disk writes.
    DiskWriteStacks "stacks of disk writes", Stack(StackWalk::DiskWriteInit), None, REQUESTS, STACK_BYTES;
    /// Stacks of hard page faults.
    FaultStacks "stacks of hard faults", Stack(StackWalk::HardFault), None, FAULTS, STACK_BYTES;
    /// Changes of the process in focus.
    Focus "changes of focus", Events(Provider::Win32k, 0x2_2000), None, [0, 5], 130;
    /// Processes that Windows freezes and thaws.
    Freezes "processes frozen and thawed", Events(Provider::KernelProcess, 0x200), None, [0, 5], 130;
    /// Requests for timer resolutions, sleep and resume.
    TimerRequests "timer requests", Events(Provider::KernelPower, 0), None, [0, 5], 130;
    /// Network packets.
    Packets "packets", Events(Provider::PacketCapture, 0), None, [10, 5_000], 1_200;
    /// Times at which .NET stops the threads of programs.
    DotnetPauses "pauses of .NET", Events(Provider::DotNet, 0x1), None, [0, 100], 100;
    /// Numbers of threads in the thread pools of .NET.
    DotnetPools "thread pools of .NET", Events(Provider::DotNet, 0x1_0000), None, [0, 100], 100;
    /// Times of user input.
    Input "times of input", Events(Provider::Input, 0), None, [0, 5], 130;
}
