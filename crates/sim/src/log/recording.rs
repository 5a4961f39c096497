//! Settings of the trace session.

use serde::Deserialize;

/// Settings of the trace session. The default records everything that explains latency, including
/// stacks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Recording {
    /// Enabled kernel keywords, named as in xperf.
    pub(crate) kernel: Vec<Keyword>,
    /// Kinds of events that are logged with a stack. A kind is ignored if its keyword is not in
    /// `kernel`.
    pub(crate) stacks: Vec<StackWalk>,
    /// Enabled manifest providers.
    pub(crate) providers: Vec<Provider>,
    /// Time between two samples, in 100 ns.
    pub(crate) sampling_interval: u32,
    /// Size of a trace buffer in KiB: a power of two from 1 to 16,384.
    pub(crate) buffer_kib: u32,
    /// True if buffers are compressed, as in merged traces.
    pub(crate) compressed: bool,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording {
            kernel: Keyword::ALL.to_vec(),
            stacks: vec![
                StackWalk::CSwitch,
                StackWalk::ReadyThread,
                StackWalk::Profile,
            ],
            providers: Provider::ALL.to_vec(),
            sampling_interval: 10_000,
            buffer_kib: 64,
            compressed: false,
        }
    }
}

impl Recording {
    /// Returns true if the keyword is recorded.
    pub(crate) fn has(&self, keyword: Keyword) -> bool {
        self.kernel.contains(&keyword)
    }

    /// Returns true if the stacks of these events are recorded. The recording must also contain the keyword of the
    /// events.
    pub(crate) fn walks(&self, stack: StackWalk) -> bool {
        self.stacks.contains(&stack) && self.has(stack.needs())
    }
}

/// A kernel keyword, which enables a group of kernel events. It is named as in xperf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Keyword {
    /// Processes and threads.
    ProcThread,
    /// Loads and unloads of images.
    Loader,
    /// Context switches.
    #[serde(rename = "CSWITCH")]
    CSwitch,
    /// Threads that become ready, and changes of their priorities.
    Dispatcher,
    /// Changes of threads' priorities.
    Priority,
    /// Boosts of starving threads.
    AntiStarvation,
    /// Deferred procedure calls.
    Dpc,
    /// Interrupt service routines.
    Interrupt,
    /// Samples of the executed code.
    Profile,
    /// Completions of disk requests.
    DiskIo,
    /// Starts of disk requests.
    DiskIoInit,
    /// Names of files.
    #[serde(rename = "FILENAME")]
    FileName,
    /// Page faults that read from a disk.
    HardFaults,
    /// TCP and UDP traffic.
    #[serde(rename = "NETWORKTRACE")]
    NetworkTrace,
    /// Sleep and resume.
    Power,
}

impl Keyword {
    /// All keywords.
    pub(crate) const ALL: [Keyword; 15] = [
        Keyword::ProcThread,
        Keyword::Loader,
        Keyword::CSwitch,
        Keyword::Dispatcher,
        Keyword::Priority,
        Keyword::AntiStarvation,
        Keyword::Dpc,
        Keyword::Interrupt,
        Keyword::Profile,
        Keyword::DiskIo,
        Keyword::DiskIoInit,
        Keyword::FileName,
        Keyword::HardFaults,
        Keyword::NetworkTrace,
        Keyword::Power,
    ];

    /// Returns the keyword's bits in the session's group masks. The top three bits are the index of
    /// the mask. Source: System Informer's `ntwmi.h`.
    pub(crate) fn group_flags(self) -> u32 {
        match self {
            Keyword::ProcThread => 0x3,
            Keyword::Loader => 0x4,
            Keyword::CSwitch => 0x2000_0004,
            Keyword::Dispatcher => 0x2000_0200,
            Keyword::Priority => 0x2000_2000,
            Keyword::AntiStarvation => 0x4000_0001,
            Keyword::Dpc => 0x2000_0080,
            Keyword::Interrupt => 0x2000_4000,
            Keyword::Profile => 0x2000_0002,
            Keyword::DiskIo => 0x100,
            Keyword::DiskIoInit => 0x400,
            Keyword::FileName => 0x200,
            Keyword::HardFaults => 0x2000,
            Keyword::NetworkTrace => 0x1_0000,
            Keyword::Power => 0x8000_8000,
        }
    }
}

/// Kind of events whose stacks can be recorded, named as in xperf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum StackWalk {
    /// Context switches, with the stack at which the new thread had stopped.
    CSwitch,
    /// Threads that become ready, with the stack of the thread that readies them.
    ReadyThread,
    /// Changes of threads' priorities.
    ThreadSetPriority,
    /// Samples of the executed code.
    Profile,
    /// Starts of disk reads.
    DiskReadInit,
    /// Starts of disk writes.
    DiskWriteInit,
    /// Starts of disk flushes.
    DiskFlushInit,
    /// Page faults that read from a disk.
    HardFault,
}

impl StackWalk {
    /// Returns the keyword that enables the event with the stack. Source: UIforETW's mapping file.
    pub(crate) fn needs(self) -> Keyword {
        match self {
            StackWalk::CSwitch => Keyword::CSwitch,
            StackWalk::ReadyThread | StackWalk::ThreadSetPriority => Keyword::Dispatcher,
            StackWalk::Profile => Keyword::Profile,
            StackWalk::DiskReadInit | StackWalk::DiskWriteInit | StackWalk::DiskFlushInit => {
                Keyword::DiskIoInit
            }
            StackWalk::HardFault => Keyword::HardFaults,
        }
    }
}

/// A manifest provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Provider {
    /// Focus changes.
    #[serde(rename = "Microsoft-Windows-Win32k")]
    Win32k,
    /// Freezing and thawing of processes.
    #[serde(rename = "Microsoft-Windows-Kernel-Process")]
    KernelProcess,
    /// Timer resolution, sleep and resume.
    #[serde(rename = "Microsoft-Windows-Kernel-Power")]
    KernelPower,
    /// Captured packets.
    #[serde(rename = "Microsoft-Windows-NDIS-PacketCapture")]
    PacketCapture,
    /// Garbage collections of .NET programs.
    #[serde(rename = "Microsoft-Windows-DotNETRuntime")]
    DotNet,
    /// Pressed keys, logged by the tool UIforETW.
    #[serde(rename = "Multi-Input", alias = "Input")]
    Input,
}

impl Provider {
    /// All providers.
    pub(crate) const ALL: [Provider; 6] = [
        Provider::Win32k,
        Provider::KernelProcess,
        Provider::KernelPower,
        Provider::PacketCapture,
        Provider::DotNet,
        Provider::Input,
    ];
}
