//! The theories, a file each.

mod capture;
mod clocks;
mod cpu_use;
mod disks;
mod freezes;
mod long_waits;
mod outranked;
mod paging;
mod quantum;
mod saturation;
mod suspension;

use crate::Theory;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[
    &long_waits::LongWaits,
    &outranked::Outranked,
    &saturation::Saturation,
    &quantum::Quantum,
    &freezes::Freezes,
    &cpu_use::CpuUse,
    &suspension::Suspension,
    &paging::Paging,
    &disks::Disks,
    &clocks::Clocks,
    &capture::Capture,
];
