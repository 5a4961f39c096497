//! What the kernel records: its keywords, and the events whose stacks it can walk.

macro_rules! named {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $value:ident $xperf:literal $wpr:literal;)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// All that laglab knows how to use.
            pub const ALL: [$name; [$($name::$value),+].len()] = [$($name::$value),+];

            /// Its name on the command line of xperf.
            pub fn xperf(self) -> &'static str {
                match self {
                    $($name::$value => $xperf,)+
                }
            }

            /// Its name in profiles of WPR.
            pub fn wpr(self) -> &'static str {
                match self {
                    $($name::$value => $wpr,)+
                }
            }

            /// The one of that name in profiles of WPR.
            pub fn of_wpr(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.wpr() == name)
            }
        }
    };
}

named! {
    /// A keyword (a flag, for xperf) of the kernel's session.
    Keyword:
    /// Processes and threads: begin, end, and which there are.
    ProcessThread "PROC_THREAD" "ProcessThread";
    /// Images loaded and unloaded, and which there are.
    Loader "LOADER" "Loader";
    /// Groups and nodes of processors. xperf always records it; WPR wants it beside `CSwitch`.
    CpuConfig "CPU_CONFIG" "CpuConfig";
    /// Context switches.
    CSwitch "CSWITCH" "CSwitch";
    /// Threads made ready.
    ReadyThread "DISPATCHER" "ReadyThread";
    /// Changes of priorities.
    ThreadPriority "PRIORITY" "ThreadPriority";
    /// Samples of what processors execute.
    SampledProfile "PROFILE" "SampledProfile";
    /// Deferred procedure calls.
    Dpc "DPC" "DPC";
    /// Interrupt service routines.
    Interrupt "INTERRUPT" "Interrupt";
    /// Requests to disks, when they are done.
    DiskIo "DISK_IO" "DiskIO";
    /// Requests to disks, when they begin.
    DiskIoInit "DISK_IO_INIT" "DiskIOInit";
    /// Names of files.
    FileName "FILENAME" "Filename";
    /// Page faults that read from a disk.
    HardFaults "HARD_FAULTS" "HardFaults";
    /// Data sent and received by TCP and UDP.
    NetworkTrace "NETWORKTRACE" "NetworkTrace";
    /// Sleep, resume and performance states.
    Power "POWER" "Power";
}

named! {
    /// Events whose stacks the kernel can walk.
    StackWalk:
    /// Context switches: where the new thread had waited.
    CSwitch "CSwitch" "CSwitch";
    /// Threads made ready: by whom.
    ReadyThread "ReadyThread" "ReadyThread";
    /// Samples: who called what is executed.
    SampledProfile "Profile" "SampledProfile";
    /// Disk reads that begin.
    DiskReadInit "DiskReadInit" "DiskReadInit";
    /// Disk writes that begin.
    DiskWriteInit "DiskWriteInit" "DiskWriteInit";
    /// Page faults that read from a disk.
    HardFault "HardFault" "HardFault";
}

impl StackWalk {
    /// The keyword without which there is no event that the stack could be of: the pairs of
    /// UIforETW's `StackWalkFlags.txt`.
    pub fn needs(self) -> Keyword {
        match self {
            StackWalk::CSwitch => Keyword::CSwitch,
            StackWalk::ReadyThread => Keyword::ReadyThread,
            StackWalk::SampledProfile => Keyword::SampledProfile,
            StackWalk::DiskReadInit | StackWalk::DiskWriteInit => Keyword::DiskIoInit,
            StackWalk::HardFault => Keyword::HardFaults,
        }
    }
}
