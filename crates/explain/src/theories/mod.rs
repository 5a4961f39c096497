//! The theories, a file or folder each.

mod busy_waiting;
pub(crate) mod capture;
mod clocks;
mod cpu_use;
mod disks;
mod freezes;
mod interrupts;
mod lock_convoys;
pub(crate) mod long_waits;
mod network;
mod outranked;
mod paging;
mod quantum;
mod saturation;
mod suspension;
mod timers;

use crate::Theory;
pub use long_waits::story;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[
    &long_waits::LongWaits,
    &outranked::Outranked,
    // Before what it explains: the same time may be lost by both.
    &network::SmbSecurity,
    &interrupts::LockedCpus,
    &interrupts::LongRoutines,
    &busy_waiting::BusyWaiting,
    &freezes::Freezes,
    &lock_convoys::LockConvoys,
    &saturation::Saturation,
    // Who captures packets wants to know of them before all that is merely good to know.
    &network::Marking,
    &quantum::Quantum,
    &timers::Timers,
    &network::ReceiveSpread,
    &network::Throughput,
    &cpu_use::CpuUse,
    &suspension::Suspension,
    &paging::Paging,
    &disks::Disks,
    &clocks::Clocks,
    &capture::Capture,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_what_the_table_of_needs_has() {
        let asked: Vec<&str> = THEORIES.iter().map(|theory| theory.about().id).collect();
        let known = record::needs::THEORIES.iter().map(|needs| needs.theory);
        assert_eq!(asked, known.collect::<Vec<_>>());
        let weighed: Vec<&str> = long_waits::CAUSES.iter().map(|about| about.id).collect();
        let known = record::needs::CAUSES.iter().map(|needs| needs.theory);
        assert_eq!(weighed, known.collect::<Vec<_>>());
    }
}
