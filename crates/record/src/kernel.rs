//! Kernel keywords, and kernel events whose stacks can be recorded.

macro_rules! named {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $value:ident $xperf:literal $wpr:literal;)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// All values that laglab uses.
            pub const ALL: [$name; [$($name::$value),+].len()] = [$($name::$value),+];

            /// Returns the name on the command line of xperf.
            pub fn xperf(self) -> &'static str {
                match self {
                    $($name::$value => $xperf,)+
                }
            }

            /// Returns the name in a WPR profile.
            pub fn wpr(self) -> &'static str {
                match self {
                    $($name::$value => $wpr,)+
                }
            }

            /// Returns the value with this name in WPR profiles.
            pub fn from_wpr_name(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.wpr() == name)
            }
        }
    };
}

named! {
    /// A keyword of the kernel session. In xperf, it is called a flag.
    Keyword:
    /// Processes and threads: start, end and rundown.
    ProcessThread "PROC_THREAD" "ProcessThread";
    /// Images: load, unload and rundown.
    Loader "LOADER" "Loader";
    /// Groups and NUMA nodes of processors. xperf always records them. In WPR, `CSwitch` requires this
    /// keyword.
    CpuConfig "CPU_CONFIG" "CpuConfig";
    /// Context switches.
    CSwitch "CSWITCH" "CSwitch";
    /// Threads made ready.
    ReadyThread "DISPATCHER" "ReadyThread";
    /// Priority changes.
    ThreadPriority "PRIORITY" "ThreadPriority";
    /// Boosts of starving threads.
    AntiStarvation "ANTI_STARVATION" "AntiStarvation";
    /// CPU samples.
    SampledProfile "PROFILE" "SampledProfile";
    /// Deferred procedure calls.
    Dpc "DPC" "DPC";
    /// Interrupt service routines.
    Interrupt "INTERRUPT" "Interrupt";
    /// Completed disk requests.
    DiskIo "DISK_IO" "DiskIO";
    /// Started disk requests.
    DiskIoInit "DISK_IO_INIT" "DiskIOInit";
    /// File names.
    FileName "FILENAME" "Filename";
    /// Page faults that read from a disk.
    HardFaults "HARD_FAULTS" "HardFaults";
    /// Data sent and received by TCP and UDP.
    NetworkTrace "NETWORKTRACE" "NetworkTrace";
    /// Sleep, resume and performance states.
    Power "POWER" "Power";
    /// Completed file operations.
    FileIo "FILE_IO" "FileIO";
    /// Started file operations.
    FileIoInit "FILE_IO_INIT" "FileIOInit";
}

named! {
    /// A kernel event whose stack can be recorded.
    StackWalk:
    /// Context switches. The stack shows where the new thread waited.
    CSwitch "CSwitch" "CSwitch";
    /// Threads made ready. The stack shows the code that made the thread ready.
    ReadyThread "ReadyThread" "ReadyThread";
    /// Changes of priorities. The stack shows the code that changed the priority.
    ThreadSetPriority "ThreadSetPriority" "ThreadSetPriority";
    /// CPU samples. The stack shows the callers of the sampled code.
    SampledProfile "Profile" "SampledProfile";
    /// Started disk reads.
    DiskReadInit "DiskReadInit" "DiskReadInit";
    /// Started disk writes.
    DiskWriteInit "DiskWriteInit" "DiskWriteInit";
    /// Started disk flushes.
    DiskFlushInit "DiskFlushInit" "DiskFlushInit";
    /// Page faults that read from a disk.
    HardFault "HardFault" "HardFault";
}

impl StackWalk {
    /// Returns the keyword that records the event. Source of the pairs: `StackWalkFlags.txt` of UIforETW.
    pub fn needs(self) -> Keyword {
        match self {
            StackWalk::CSwitch => Keyword::CSwitch,
            StackWalk::ReadyThread | StackWalk::ThreadSetPriority => Keyword::ReadyThread,
            StackWalk::SampledProfile => Keyword::SampledProfile,
            StackWalk::DiskReadInit | StackWalk::DiskWriteInit | StackWalk::DiskFlushInit => {
                Keyword::DiskIoInit
            }
            StackWalk::HardFault => Keyword::HardFaults,
        }
    }
}
