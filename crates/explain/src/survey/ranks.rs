//! CPU time by rank.

use rustc_hash::FxHashMap;
use tables::CpuRunsView;

/// CPU time of those threads of a process that have the same rank. A process has one entry for each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankUse {
    /// Row of the process in the table `processes`.
    pub process_row: Option<u32>,
    /// Id of the process.
    pub process_id: Option<u32>,
    /// Rank of the threads when they were switched out.
    pub rank: u8,
    /// Number of runs of these threads.
    pub runs: u64,
    /// Total length of the runs that are not doubtful, in nanoseconds.
    pub cpu_ns: i64,
    /// End of the first run, in nanoseconds since the trace's start.
    pub first_ns: i64,
    /// End of the last run, in nanoseconds since the trace's start.
    pub last_ns: i64,
}

#[derive(Default)]
pub(super) struct Ranks {
    uses: FxHashMap<(Option<u32>, Option<u32>, u8), RankUse>,
    known: u64,
}

impl Ranks {
    /// Adds runs. The rank of a doubtful run is known, because the switch that ended the run contains the rank. The
    /// length of a doubtful run is not known.
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, is_doubtful: &[bool]) {
        for (row, is_doubtful) in is_doubtful.iter().enumerate() {
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
            if !is_doubtful {
                used.cpu_ns = used.cpu_ns.saturating_add(runs.cpu_ns[row]);
            }
            used.last_ns = end_ns;
        }
    }

    /// Returns the sums by process and rank, and the number of runs whose rank is known.
    pub(super) fn finish(self) -> (Vec<RankUse>, u64) {
        let mut uses: Vec<RankUse> = self.uses.into_values().collect();
        uses.sort_by_key(|used| (used.process_row, used.process_id, used.rank));
        (uses, self.known)
    }
}
