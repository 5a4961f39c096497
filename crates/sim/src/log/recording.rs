//! What a recording asks for: the profile of the model's trace session.

use serde::Deserialize;

/// What is recorded. The default records everything that explains latency, with stacks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Recording {
    /// Kernel keywords, as xperf names them.
    pub(crate) kernel: Vec<Keyword>,
    /// Events that carry a stack; one whose keyword is missing carries none.
    pub(crate) stacks: Vec<StackWalk>,
    /// Manifest providers.
    pub(crate) providers: Vec<Provider>,
    /// Time between two samples, in 100 ns.
    pub(crate) sampling_interval: u32,
    /// Size of a trace buffer in KiB: a power of two from 1 to 16,384.
    pub(crate) buffer_kib: u32,
    /// Whether the buffers are compressed, as in merged traces.
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
    /// Whether the keyword is recorded.
    pub(crate) fn has(&self, keyword: Keyword) -> bool {
        self.kernel.contains(&keyword)
    }

    /// Whether the stacks of these events are recorded, which needs one of their keywords too.
    pub(crate) fn walks(&self, stack: StackWalk) -> bool {
        self.stacks.contains(&stack) && self.has(stack.needs())
    }
}

/// A kernel keyword, by its name in xperf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Keyword {
    /// Processes and threads.
    ProcThread,
    /// Images.
    Loader,
    /// Context switches.
    #[serde(rename = "CSWITCH")]
    CSwitch,
    /// Threads made ready, and their priorities when they change.
    Dispatcher,
    /// Changes of priorities.
    Priority,
    /// Boosts of starving threads.
    AntiStarvation,
    /// Deferred procedure calls.
    Dpc,
    /// Interrupt service routines.
    Interrupt,
    /// Samples of what runs.
    Profile,
    /// Disk requests that completed.
    DiskIo,
    /// Disk requests that began.
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
    /// Every keyword.
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

    /// The keyword's bits in the session's group masks: the three top bits are the mask's number.
    /// From System Informer's `ntwmi.h`.
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

/// Events whose stacks can be recorded, by their names in xperf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum StackWalk {
    /// Context switches: where the new thread had waited.
    CSwitch,
    /// Threads made ready: who readied them.
    ReadyThread,
    /// Changes of priorities.
    ThreadSetPriority,
    /// Samples.
    Profile,
    /// Disk reads that begin.
    DiskReadInit,
    /// Disk writes that begin.
    DiskWriteInit,
    /// Disk flushes that begin.
    DiskFlushInit,
    /// Page faults that read from a disk.
    HardFault,
}

impl StackWalk {
    /// The keyword without which there is nothing to attach the stack to, after UIforETW's
    /// mapping file.
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
    /// Which process has the focus.
    #[serde(rename = "Microsoft-Windows-Win32k")]
    Win32k,
    /// Processes that are frozen and thawed.
    #[serde(rename = "Microsoft-Windows-Kernel-Process")]
    KernelProcess,
    /// Timer resolution, sleep and resume.
    #[serde(rename = "Microsoft-Windows-Kernel-Power")]
    KernelPower,
    /// Packets.
    #[serde(rename = "Microsoft-Windows-NDIS-PacketCapture")]
    PacketCapture,
    /// Keys pressed, from UIforETW.
    #[serde(rename = "Multi-Input", alias = "Input")]
    Input,
}

impl Provider {
    /// Every provider.
    pub(crate) const ALL: [Provider; 5] = [
        Provider::Win32k,
        Provider::KernelProcess,
        Provider::KernelPower,
        Provider::PacketCapture,
        Provider::Input,
    ];
}
