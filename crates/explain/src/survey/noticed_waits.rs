//! The waits of ready threads that people notice, by process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::CpuRunsView;

use super::longest_waits::Wait;
use super::wanted::Wanted;
use crate::ranges::insert;

/// Up to here a reaction feels instantaneous (Nielsen).
pub const NOTICED_NS: i64 = 100_000_000;

/// How many waits of a process are kept one by one.
const KEPT: usize = 64;

/// The waits of a process's ready threads for a CPU that lasted for [`NOTICED_NS`] or longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticedWaits {
    /// The process's row in `processes`.
    pub process_row: Option<u32>,
    /// Its id.
    pub process_id: Option<u32>,
    /// How many there were, without those during which the thread may have run unseen.
    pub waits: u64,
    /// The longest of these, in nanoseconds.
    pub longest_ns: i64,
    /// When there was at least one of these, in order and apart from each other. Each is no shorter
    /// than a wait, so that there cannot be many.
    pub ranges: Vec<Range<i64>>,
    /// The longest few of all, the longest first.
    pub longest: Vec<Wait>,
}

impl NoticedWaits {
    /// How long there was at least one, in nanoseconds.
    pub fn waited_ns(&self) -> i64 {
        let lengths = self.ranges.iter().map(|range| range.end - range.start);
        lengths.sum()
    }
}

#[derive(Default)]
struct Kept {
    noticed: NoticedWaits,
    /// The longest so far, the shortest of them on top.
    longest: BinaryHeap<Reverse<Wait>>,
}

/// Sums up the waits process by process.
#[derive(Default)]
pub(super) struct ByProcess(FxHashMap<(Option<u32>, Option<u32>), Kept>);

impl ByProcess {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, wanted: &Wanted<'_>) {
        for row in 0..runs.len() {
            let Some(ready_ns) = runs.ready_ns.get(row).filter(|ns| *ns >= NOTICED_NS) else {
                continue;
            };
            if !wanted.is(runs, row, ready_ns) {
                continue;
            }
            let wait = Wait::read(runs, row, ready_ns);
            let id_if_alone = wait.process_id.filter(|_| wait.process_row.is_none());
            let kept = self.0.entry((wait.process_row, id_if_alone)).or_default();
            let noticed = &mut kept.noticed;
            noticed.process_row = wait.process_row;
            noticed.process_id = wait.process_id;
            if !wait.ran_unseen {
                noticed.waits += 1;
                noticed.longest_ns = noticed.longest_ns.max(ready_ns);
                insert(&mut noticed.ranges, wait.range());
            }
            kept.longest.push(Reverse(wait));
            if kept.longest.len() > KEPT {
                kept.longest.pop();
            }
        }
    }

    /// The process whose threads waited longest in all comes first.
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
