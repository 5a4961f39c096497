//! The theories, a file each.

mod busy_waiting;
mod interrupts;
mod network;
mod outranked;
mod timers;

use crate::Theory;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[
    &outranked::Outranked,
    // Before what it explains: the same time may be lost by both.
    &network::SmbSecurity,
    &interrupts::LockedCpus,
    &interrupts::LongRoutines,
    &busy_waiting::BusyWaiting,
    &timers::Timers,
    &network::ReceiveSpread,
    &network::Throughput,
    &network::Marking,
];
