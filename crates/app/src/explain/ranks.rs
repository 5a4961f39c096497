//! What context switches say of ranks, quanta and priorities.

use serde::Serialize;
use tables::Tables;

use super::largest;
use super::names::{Names, PerProcess, Process};

/// `WrQuantumEnd`: the old thread had used up its quantum.
const QUANTUM_END: u8 = 30;
/// `WrPreempted`: a thread that goes before it took its CPU.
const PREEMPTED: u8 = 32;
/// `KTHREAD_STATE` Ready: the wait reason then says why the thread lost its CPU.
const READY: u8 = 1;

/// Facts about scheduling.
#[derive(Debug, Serialize)]
pub(crate) struct Ranks {
    /// Threads switched out, idle threads left out.
    pub(crate) switch_outs: u64,
    /// Those whose rank was recorded (Windows 10 1709 and later).
    pub(crate) with_rank: u64,
    /// Those whose rank was not 0: threads that yield to every thread of rank 0, whatever the
    /// priorities.
    pub(crate) outranked: u64,
    /// The highest rank seen.
    pub(crate) highest_rank: Option<u8>,
    /// Threads that left their CPU because their quantum was over.
    pub(crate) quantum_ends: u64,
    /// Threads that lost their CPU to one that goes before them.
    pub(crate) preemptions: u64,
    /// Those switched out with their quantum overdrawn; `None` if never recorded.
    pub(crate) overdrawn: Option<u64>,
    /// Processes with threads of a rank other than 0, those most often so first.
    pub(crate) ranked_processes: Vec<RankedProcess>,
}

/// A process whose threads had ranks.
#[derive(Debug, Serialize)]
pub(crate) struct RankedProcess {
    #[serde(flatten)]
    pub(crate) process: Process,
    /// Times a thread of it was switched out with a rank other than 0.
    pub(crate) switch_outs: u64,
    /// The lowest such rank.
    pub(crate) lowest: u8,
    /// The highest.
    pub(crate) highest: u8,
}

pub(super) fn read(tables: &Tables, names: &Names<'_>) -> Option<Ranks> {
    let mut ranks = Ranks {
        switch_outs: 0,
        with_rank: 0,
        outranked: 0,
        highest_rank: None,
        quantum_ends: 0,
        preemptions: 0,
        overdrawn: None,
        ranked_processes: Vec::new(),
    };
    let mut ranked: PerProcess<'_, '_, (u64, u8, u8)> = PerProcess::new(names);
    for switches in &tables.context_switches {
        for (row, thread) in switches.old_thread_id.iter().enumerate() {
            if *thread == 0 {
                continue;
            }
            ranks.switch_outs += 1;
            if switches.old_state[row] == READY {
                ranks.quantum_ends += u64::from(switches.old_wait_reason[row] == QUANTUM_END);
                ranks.preemptions += u64::from(switches.old_wait_reason[row] == PREEMPTED);
            }
            if let Some(quantum) = switches.old_remaining_quantum.get(row) {
                *ranks.overdrawn.get_or_insert(0) += u64::from(quantum < 0);
            }
            let Some(rank) = switches.old_rank.get(row) else {
                continue;
            };
            ranks.with_rank += 1;
            ranks.highest_rank = ranks.highest_rank.max(Some(rank));
            if rank > 0 {
                ranks.outranked += 1;
                let (times, lowest, highest) = ranked.of_thread(*thread, switches.time_ns[row]);
                *lowest = if *times == 0 { rank } else { rank.min(*lowest) };
                *highest = rank.max(*highest);
                *times += 1;
            }
        }
    }
    let ranked = ranked
        .into_sums()
        .into_iter()
        .map(|(process, (switch_outs, lowest, highest))| RankedProcess {
            process,
            switch_outs,
            lowest,
            highest,
        })
        .collect();
    ranks.ranked_processes = largest(ranked, |p: &RankedProcess| {
        (p.switch_outs, std::cmp::Reverse(p.process.clone()))
    });
    (ranks.switch_outs > 0).then_some(ranks)
}
