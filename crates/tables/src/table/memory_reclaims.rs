//! `memory_reclaims`: time ranges in which threads of Linux had to free memory before they got memory.

use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable};
use crate::register::{EventTable, Reader, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per direct reclaim of Linux: a time range in which a thread needed memory and first had to free memory.
    /// During this time, the thread runs or waits for disks.
    MemoryReclaims, MemoryReclaimsView = "memory_reclaims" sorted by time_ns
        title "Memory Reclaims"
        record "memory reclaims of Linux (perf record -e vmscan:mm_vmscan_memcg_reclaim_begin, …_end)"
        lasts start_ns to time_ns
    {
        /// End of the reclaim.
        time_ns: Vec<i64> = "Linux vmscan: mm_vmscan_direct_reclaim_end, mm_vmscan_memcg_reclaim_end",
        /// Start of the reclaim. Unknown if it began before the recording.
        start_ns: Nullable<i64> = "mm_vmscan_direct_reclaim_begin, mm_vmscan_memcg_reclaim_begin",
        /// Duration of the reclaim.
        duration_ns: Nullable<i64> = "time_ns - start_ns",
        /// CPU at the end of the reclaim.
        cpu: Vec<u16> = "CPU of the event",
        /// Shortage: `cgroup` (the limit of a cgroup) or `machine`.
        kind: Names<Shortage> = "name of the event",
        /// Thread that freed memory.
        thread_id: Vec<u32> = "common_pid",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Number of freed pages.
        pages: Vec<u64> = "nr_reclaimed",
    }
}

/// Kind of memory shortage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shortage {
    /// A cgroup reached its memory limit.
    Cgroup,
    /// The machine has little free memory.
    Machine,
}

impl Named for Shortage {
    const NAMES: &'static [&'static str] = &["cgroup", "machine"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Start or end of a reclaim.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimEvent {
    /// CPU that logged the event.
    pub cpu: u16,
    /// Id of the thread.
    pub thread_id: u32,
    /// Kind of the event.
    pub kind: Shortage,
    /// Number of freed pages; `None` at the start of a reclaim.
    pub pages: Option<u64>,
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct ReclaimState {
    threads: ThreadFinder,
    /// Start times in nanoseconds of reclaims that have not ended, by thread id and kind of shortage.
    open: FxHashMap<(u32, Shortage), i64>,
}

impl Register for MemoryReclaims {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for MemoryReclaims {
    type Raw = TimedValues<ReclaimEvent>;
    type State = ReclaimState;

    fn join(
        raw: &mut TimedValues<ReclaimEvent>,
        state: &mut ReclaimState,
        trackers: &Trackers<'_>,
    ) -> MemoryReclaims {
        let mut rows = MemoryReclaims::default();
        rows.reserve(raw.rows() / 2);
        for (time_ns, event) in std::mem::take(raw).0 {
            let key = (event.thread_id, event.kind);
            let Some(pages) = event.pages else {
                state.open.insert(key, time_ns);
                continue;
            };
            let start_ns = state.open.remove(&key);
            rows.time_ns.push(time_ns);
            rows.start_ns.push(start_ns);
            let duration_ns = start_ns.map(|start_ns| time_ns.saturating_sub(start_ns));
            rows.duration_ns.push(duration_ns);
            rows.cpu.push(event.cpu);
            rows.kind.0.push(event.kind);
            rows.thread_id.push(event.thread_id);
            rows.pages.push(pages);
        }
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}
