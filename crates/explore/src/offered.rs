//! The tables that are offered to be looked at.

use tables::Table;

/// What is offered of the tables, with what their declarations do not say.
pub(crate) struct Offered {
    pub(crate) table: Table,
    pub(crate) title: &'static str,
    /// What to record if it holds nothing; empty where that is as it should be.
    pub(crate) record: &'static str,
    /// The columns that say from when to when rows last.
    pub(crate) lasts: Option<(&'static str, &'static str)>,
    /// What has no begin or end has always been or ever is.
    pub(crate) is_life: bool,
}

const fn moments(table: Table, title: &'static str, record: &'static str) -> Offered {
    Offered {
        table,
        title,
        record,
        lasts: None,
        is_life: false,
    }
}

impl Offered {
    const fn lasting(self, start: &'static str, end: &'static str) -> Offered {
        Offered {
            lasts: Some((start, end)),
            ..self
        }
    }

    const fn living(self, start: &'static str, end: &'static str) -> Offered {
        Offered {
            lasts: Some((start, end)),
            is_life: true,
            ..self
        }
    }
}

/// The tables, in the order in which they are listed.
pub(crate) const OFFERED: &[Offered] = &[
    moments(
        Table::CpuRuns,
        "CPU Usage (Precise)",
        "context switches and threads made ready (xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER, \
         WPR keywords CSwitch and ReadyThread)",
    )
    .lasting("start_ns", "end_ns"),
    moments(
        Table::Samples,
        "CPU Usage (Sampled)",
        "samples (xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, WPR keyword \
         SampledProfile)",
    ),
    moments(
        Table::Interrupts,
        "DPC/ISR Duration",
        "interrupts (xperf -on INTERRUPT+DPC, WPR keywords Interrupt and DPC)",
    )
    .lasting("start_ns", "end_ns"),
    moments(
        Table::ReadyThreads,
        "Ready Threads",
        "threads made ready (xperf -on DISPATCHER, WPR keyword ReadyThread)",
    ),
    moments(
        Table::ContextSwitches,
        "Context Switches",
        "context switches (xperf -on CSWITCH, WPR keyword CSwitch)",
    ),
    moments(
        Table::Priorities,
        "Changes of Priority",
        "changes of priorities (xperf -on PRIORITY, or the provider \
         Microsoft-Windows-Kernel-Process)",
    ),
    moments(
        Table::DiskIo,
        "Disk Usage",
        "disk requests (xperf -on DISK_IO+DISK_IO_INIT, WPR keywords DiskIO and DiskIOInit)",
    )
    .lasting("init_ns", "time_ns"),
    moments(
        Table::FileIo,
        "File I/O",
        "file operations (xperf -on FILE_IO+FILE_IO_INIT+FILENAME, WPR keywords FileIO and \
         FileIOInit)",
    )
    .lasting("start_ns", "time_ns"),
    moments(
        Table::HardFaults,
        "Hard Faults",
        "hard faults (xperf -on HARD_FAULTS, WPR keyword HardFaults)",
    )
    .lasting("start_ns", "time_ns"),
    moments(
        Table::Network,
        "Network (TCP and UDP)",
        "network events (xperf -on NETWORKTRACE, WPR keyword NetworkTrace)",
    ),
    moments(
        Table::Packets,
        "Packets",
        "packets (netsh trace start capture=yes, pktmon, or a pcapng file beside the trace)",
    ),
    moments(
        Table::Focus,
        "Window in Focus",
        "changes of focus (provider Microsoft-Windows-Win32k, keywords 0x22000)",
    )
    .lasting("start_ns", "end_ns"),
    moments(
        Table::Input,
        "Input",
        "input (provider Microsoft-Windows-Win32k, or UIforETW's Multi-Input)",
    ),
    moments(
        Table::TimerRequests,
        "Timer Requests",
        "timer resolutions (provider Microsoft-Windows-Kernel-Power)",
    ),
    moments(
        Table::ProcessFreezes,
        "Frozen Processes",
        "freezes (provider Microsoft-Windows-Kernel-Process with keyword 0x200)",
    )
    .lasting("start_ns", "end_ns"),
    moments(
        Table::Processes,
        "Process Lifetimes",
        "processes (xperf -on PROC_THREAD, WPR keyword ProcessThread)",
    )
    .living("start_ns", "end_ns"),
    moments(
        Table::Threads,
        "Thread Lifetimes",
        "threads (xperf -on PROC_THREAD, WPR keyword ProcessThread)",
    )
    .living("start_ns", "end_ns"),
    moments(
        Table::Images,
        "Images",
        "images (xperf -on LOADER, WPR keyword Loader)",
    )
    .living("load_ns", "unload_ns"),
    moments(Table::Marks, "Marks", "marks (xperf -m, wpr -marker)"),
    moments(
        Table::Events,
        "Generic Events",
        "providers (xperf -start … -on PROVIDER, or a WPR profile that names them)",
    ),
    moments(Table::Damages, "Losses and Faults", "").lasting("start_ns", "end_ns"),
    moments(Table::LatencySamples, "Measured Latency", ""),
];
