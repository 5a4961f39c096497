//! Noticeable waits of ready threads, by process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::CpuRunsView;

use super::longest_waits::Wait;
use super::wait_filter::WaitFilter;
use crate::ranges::insert;
use crate::thresholds::NOTICED_NS;

/// Maximum number of waits kept for a process.
const KEPT: usize = 64;

/// Waits of a process's ready threads for a CPU. Each wait lasted at least `NOTICED_NS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticedWaits {
    /// Row of the process in the table `processes`.
    pub process_row: Option<u32>,
    /// Id of the process.
    pub process_id: Option<u32>,
    /// Number of waits. A wait during which the thread may have run unseen does not count.
    pub waits: u64,
    /// Length of the longest wait that counts in `waits`, in nanoseconds.
    pub longest_ns: i64,
    /// Time ranges during which at least one wait that counts in `waits` lasted, sorted and disjoint. Each
    /// range is at least `NOTICED_NS` long, so there cannot be many.
    pub ranges: Vec<Range<i64>>,
    /// Longest waits, also those during which the thread may have run unseen. The longest wait comes first.
    pub longest: Vec<Wait>,
}

impl NoticedWaits {
    /// Returns the total time with at least one wait, in nanoseconds.
    pub fn waited_ns(&self) -> i64 {
        let lengths = self.ranges.iter().map(|range| range.end - range.start);
        lengths.sum()
    }
}

/// Noticeable waits of a process.
#[derive(Default)]
struct ProcessWaits {
    noticed: NoticedWaits,
    /// Longest waits so far. The shortest of them is on top of the heap.
    longest: BinaryHeap<Reverse<Wait>>,
}

/// Noticeable waits by process row and process id.
#[derive(Default)]
pub(super) struct ByProcess(FxHashMap<(Option<u32>, Option<u32>), ProcessWaits>);

impl ByProcess {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, wanted: &WaitFilter<'_>) {
        for row in 0..runs.len() {
            let Some(ready_ns) = runs.ready_ns.get(row).filter(|ns| *ns >= NOTICED_NS) else {
                continue;
            };
            if !wanted.is(runs, row, ready_ns) {
                continue;
            }
            let wait = Wait::read(runs, row, ready_ns);
            let id_if_alone = wait.process_id.filter(|_| wait.process_row.is_none());
            let entry = self.0.entry((wait.process_row, id_if_alone)).or_default();
            let noticed = &mut entry.noticed;
            noticed.process_row = wait.process_row;
            noticed.process_id = wait.process_id;
            if !wait.ran_unseen {
                noticed.waits += 1;
                noticed.longest_ns = noticed.longest_ns.max(ready_ns);
                insert(&mut noticed.ranges, wait.range());
            }
            entry.longest.push(Reverse(wait));
            if entry.longest.len() > KEPT {
                entry.longest.pop();
            }
        }
    }

    /// Returns the sums, the process with the longest total first.
    pub(super) fn finish(self) -> Vec<NoticedWaits> {
        let mut all: Vec<NoticedWaits> = (self.0.into_values())
            .map(|kept| NoticedWaits {
                longest: (kept.longest.into_sorted_vec().into_iter())
                    .map(|wait| wait.0)
                    .collect(),
                ..kept.noticed
            })
            .collect();
        all.sort_by_key(|waits| {
            (
                Reverse(waits.waited_ns()),
                waits.process_row,
                waits.process_id,
            )
        });
        all
    }
}
