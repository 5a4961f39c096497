//! The theories. Each theory has its own file or folder.

mod busy_waiting;
mod capture;
mod clocks;
mod cpu_limit;
mod cpu_use;
mod disks;
mod dotnet;
mod freezes;
mod hangs;
mod interrupts;
mod inversion;
mod io_limit;
mod late_answers;
mod lock_convoys;
mod long_waits;
mod memory_reclaim;
mod network;
mod outranked;
mod paging;
mod quantum;
mod saturation;
mod short_waits;
mod spinning;
mod stolen_time;
mod stopped;
mod suspension;
mod timer_slack;
mod timers;

use tables::{Identities, Table};

use crate::chain::cpu_wait::weigh;
use crate::theory::{Overlap, Relation, StopTarget};
use crate::{About, Survey, Theory};
pub use hangs::{PathPart, PathTime, divided};
pub use long_waits::{late, story};
pub use timers::TIMERS_PER_PROCESS_FROM;

/// All theories, in the order in which their answers are listed.
pub(crate) static THEORIES: &[&dyn Theory] = &[
    &long_waits::LongWaits,
    &hangs::Hangs,
    &short_waits::ShortWaits,
    &outranked::Outranked,
    // This theory comes before the theory about locked CPUs, because signing and encryption can lock CPUs,
    // and both theories may report the same delay.
    &network::SmbSecurity,
    &interrupts::LockedCpus,
    &interrupts::LongRoutines,
    &interrupts::InterruptedCpus,
    &interrupts::LongInterrupts,
    &busy_waiting::BusyWaiting,
    &spinning::Spinning,
    &freezes::Freezes,
    &stopped::Stopped,
    &cpu_limit::CpuLimit,
    &memory_reclaim::MemoryReclaim,
    &io_limit::IoLimit,
    &lock_convoys::LockConvoys,
    &inversion::Inversion,
    &late_answers::LateAnswers,
    &dotnet::Pauses,
    &dotnet::Pools,
    &stolen_time::StolenTime,
    &saturation::Saturation,
    // This theory comes before other theories whose findings are only information, because users
    // who capture packets want to know about marks.
    &network::Marking,
    &quantum::Quantum,
    &timers::Timers,
    &timer_slack::TimerSlack,
    &network::ReceiveSpread,
    &network::PacketSpread,
    &network::Throughput,
    &cpu_use::CpuUse,
    &suspension::Suspension,
    &paging::Paging,
    &disks::Disks,
    &clocks::Clocks,
    &capture::Capture,
];

/// Theories whose findings may be about the same delay. Of the causes of a symptom, the one that explains the others comes
/// first.
pub(crate) static OVERLAPS: &[Overlap] = &[
    symptom(
        &long_waits::LongWaits,
        &cpu_limit::CpuLimit,
        StopTarget::Threads,
    ),
    symptom(&hangs::Hangs, &dotnet::Pauses, StopTarget::Process),
    symptom(&hangs::Hangs, &freezes::Freezes, StopTarget::Process),
    symptom(
        &hangs::Hangs,
        &lock_convoys::LockConvoys,
        StopTarget::Threads,
    ),
    symptom(&hangs::Hangs, &network::SmbSecurity, StopTarget::Cpus),
    symptom(&hangs::Hangs, &interrupts::LockedCpus, StopTarget::Cpus),
    symptom(
        &short_waits::ShortWaits,
        &network::SmbSecurity,
        StopTarget::Threads,
    ),
    symptom(
        &short_waits::ShortWaits,
        &interrupts::LockedCpus,
        StopTarget::Threads,
    ),
    symptom(
        &interrupts::LongRoutines,
        &network::SmbSecurity,
        StopTarget::Threads,
    ),
    symptom(
        &interrupts::LongRoutines,
        &interrupts::LockedCpus,
        StopTarget::Threads,
    ),
    symptom(
        &interrupts::LockedCpus,
        &network::SmbSecurity,
        StopTarget::Threads,
    ),
    part(&long_waits::LongWaits, &hangs::Hangs),
    part(&disks::Disks, &hangs::Hangs),
    part(&interrupts::LongRoutines, &short_waits::ShortWaits),
];

const fn symptom(
    covered: &'static dyn Theory,
    covering: &'static dyn Theory,
    stopped: StopTarget,
) -> Overlap {
    Overlap {
        covered,
        covering,
        relation: Relation::Symptom(stopped),
    }
}

const fn part(covered: &'static dyn Theory, covering: &'static dyn Theory) -> Overlap {
    Overlap {
        covered,
        covering,
        relation: Relation::Part,
    }
}

/// Theories and causes of waits that need the ranks of threads.
pub(crate) static NEED_RANKS: &[&About] = &[&outranked::ABOUT, &weigh::RANK, &weigh::DISPATCHER];

/// Returns the tables that [`explain()`](crate::explain) reads. A caller that also needs other
/// tables can make all tables in one pass.
pub fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Survey::TABLES.to_vec();
    tables.extend(Identities::TABLES);
    tables.extend(THEORIES.iter().flat_map(|theory| theory.about().tables));
    tables.sort_unstable();
    tables.dedup();
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theory_and_cause_has_needs_in_the_same_order() {
        let of_windows = THEORIES.iter().filter(|theory| theory.is_asked_of(false));
        let ids: Vec<&str> = of_windows.map(|theory| theory.about().id).collect();
        let known = record::needs::THEORIES.iter().map(|needs| needs.theory);
        assert_eq!(ids, known.collect::<Vec<_>>());
        let of_linux = THEORIES.iter().filter(|theory| theory.is_asked_of(true));
        for theory in of_linux.map(|theory| theory.about().id) {
            assert!(record::linux::for_theory(theory).is_some(), "{theory}");
        }
        let weighed: Vec<&str> = long_waits::CAUSES.iter().map(|about| about.id).collect();
        let known = record::needs::CAUSES.iter().map(|needs| needs.theory);
        assert_eq!(weighed, known.collect::<Vec<_>>());
    }
}
