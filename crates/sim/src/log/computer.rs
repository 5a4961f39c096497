//! The simulated machine.

use crate::windows::Windows;

/// Facts about the machine that the log contains.
#[derive(Clone, Debug)]
pub(crate) struct Computer {
    /// Release of Windows.
    pub(crate) windows: Windows,
    /// True for a server edition.
    pub(crate) server: bool,
    /// Name of the machine.
    pub(crate) name: String,
    /// Processors, by system-wide index.
    pub(crate) cpus: Vec<Cpu>,
    /// Nominal frequency of the processors, in MHz.
    pub(crate) cpu_mhz: u32,
    /// Memory in MiB.
    pub(crate) memory_mib: u32,
    /// Ticks of the performance counter per second.
    pub(crate) frequency: u64,
    /// Start of the trace as FILETIME, 100 ns since 1601 UTC.
    pub(crate) start: u64,
    /// Time of the boot as FILETIME. It is at or before `start`.
    pub(crate) boot: u64,
}

/// Position of a logical processor in the topology of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// Processor group.
    pub(crate) group: u16,
    /// Number of the processor in its group, below 64.
    pub(crate) number: u8,
    /// Index of the core. Several logical processors may share it.
    pub(crate) core: u32,
    /// NUMA node.
    pub(crate) node: u16,
}

impl Computer {
    /// Returns the value of the performance counter at the trace's start. The counter is 0 at the
    /// boot.
    pub(crate) fn raw_start(&self) -> i64 {
        let since_boot = u128::from(self.start.saturating_sub(self.boot));
        let ticks = since_boot * u128::from(self.frequency) / 10_000_000;
        // Limits the value to half the range of `i64`, so that the times of a trace cannot
        // overflow.
        ticks.min(i64::MAX as u128 / 2) as i64
    }
}
