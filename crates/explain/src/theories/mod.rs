//! The theories, a file each.

mod capture;
mod clocks;
mod cpu_use;
mod disks;
mod freezes;
mod outranked;
mod paging;
mod quantum;
mod saturation;
mod suspension;

use crate::Theory;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[
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
