//! The machine that a log is of.

use crate::windows::Windows;

/// What a log says about its machine.
#[derive(Clone, Debug)]
pub(crate) struct Computer {
    /// Release of Windows.
    pub(crate) windows: Windows,
    /// A server edition.
    pub(crate) server: bool,
    /// The machine's name.
    pub(crate) name: String,
    /// Its processors, by system-wide index.
    pub(crate) cpus: Vec<Cpu>,
    /// Their nominal frequency.
    pub(crate) cpu_mhz: u32,
    /// Memory in MiB.
    pub(crate) memory_mib: u32,
    /// Ticks of the performance counter per second.
    pub(crate) frequency: u64,
    /// When the trace begins: FILETIME, 100 ns since 1601 UTC.
    pub(crate) start: u64,
    /// When the machine was booted, as FILETIME; not after `start`.
    pub(crate) boot: u64,
}

/// Where a logical processor sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// Its processor group.
    pub(crate) group: u16,
    /// Its number in the group, below 64.
    pub(crate) number: u8,
    /// Its core, which it may share.
    pub(crate) core: u32,
    /// Its NUMA node.
    pub(crate) node: u16,
}

impl Computer {
    /// Raw time of the trace's beginning: the performance counter counts from the boot on.
    pub(crate) fn raw_start(&self) -> i64 {
        let since_boot = u128::from(self.start.saturating_sub(self.boot));
        let ticks = since_boot * u128::from(self.frequency) / 10_000_000;
        // Half the range, so that no trace's times overflow.
        ticks.min(i64::MAX as u128 / 2) as i64
    }
}
