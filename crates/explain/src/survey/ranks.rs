//! Who had a rank.

use rustc_hash::FxHashMap;
use tables::CpuRunsView;

/// What a process had of the CPUs while its threads were of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankUse {
    /// The process's row in `processes`.
    pub process_row: Option<u32>,
    /// Its id.
    pub process_id: Option<u32>,
    /// The rank, when its threads were switched out.
    pub rank: u8,
    /// How often that was.
    pub runs: u64,
    /// How long these runs were, in nanoseconds.
    pub cpu_ns: i64,
    /// When the first of them ended.
    pub first_ns: i64,
    /// When the last of them ended.
    pub last_ns: i64,
}

#[derive(Default)]
pub(super) struct Ranks {
    uses: FxHashMap<(Option<u32>, Option<u32>, u8), RankUse>,
    known: u64,
}

impl Ranks {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>) {
        for row in 0..runs.len() {
            let Some(rank) = runs.rank_out.get(row) else {
                continue;
            };
            self.known += 1;
            if rank == 0 {
                continue;
            }
            let end_ns = runs.end_ns[row];
            let process = (runs.process_row.get(row), runs.process_id.get(row));
            let used = self
                .uses
                .entry((process.0, process.1, rank))
                .or_insert(RankUse {
                    process_row: process.0,
                    process_id: process.1,
                    rank,
                    runs: 0,
                    cpu_ns: 0,
                    first_ns: end_ns,
                    last_ns: end_ns,
                });
            used.runs += 1;
            used.cpu_ns = used.cpu_ns.saturating_add(runs.cpu_ns[row]);
            used.last_ns = end_ns;
        }
    }

    /// By process, then by rank; and how many runs have a known rank.
    pub(super) fn finish(self) -> (Vec<RankUse>, u64) {
        let mut uses: Vec<RankUse> = self.uses.into_values().collect();
        uses.sort_by_key(|used| (used.process_row, used.process_id, used.rank));
        (uses, self.known)
    }
}
