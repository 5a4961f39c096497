//! Who waited for CPUs that were locked.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, StoreError, Table};

use super::Flood;
use crate::{Case, Column, Evidence, Unit, duration, grouped};

/// Who waits for less is not held up: it is what a DPC may take, and some.
const HELD_UP_NS: i64 = 1_000_000;

/// Rows shown.
const SHOWN: usize = 10;

/// Waits of a thread for locked CPUs.
#[derive(Clone, Copy, Default)]
struct Waits {
    count: i64,
    ready_ns: i64,
    longest_ns: i64,
}

/// Threads that were ready for long before they ran on the locked CPUs, or elsewhere while one of these
/// is their ideal processor, in whose queue they wait; those that waited longest in all first.
pub(super) struct Victims(Vec<(Option<u32>, u32, Waits)>);

const COLUMNS: [&str; 7] = [
    "start_ns",
    "end_ns",
    "cpu",
    "thread_id",
    "process_row",
    "ready_ns",
    "ideal_processor",
];

impl Victims {
    pub(super) fn read(case: &Case<'_>, flood: &Flood) -> Result<Victims, StoreError> {
        let mut threads: FxHashMap<(Option<u32>, u32), Waits> = FxHashMap::default();
        let runs = case.table(Table::CpuRuns)?;
        // Those that begin in it may end later.
        let from = flood.during.start..i64::MAX;
        for batch in case.batches(&runs, from, &COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let ready_ns = view.ready_ns.get(row).filter(|ns| *ns >= HELD_UP_NS);
                let Some(ready_ns) = ready_ns.filter(|_| view.thread_id[row] != 0) else {
                    continue;
                };
                let ideal = view.ideal_processor.get(row).map(u16::from);
                let mut its_cpus = [Some(view.cpu[row]), ideal].into_iter().flatten();
                if flood.during.contains(&view.start_ns[row])
                    && its_cpus.any(|cpu| flood.cpus.contains(&cpu))
                {
                    let key = (view.process_row.get(row), view.thread_id[row]);
                    let waits = threads.entry(key).or_default();
                    waits.count += 1;
                    waits.ready_ns = waits.ready_ns.saturating_add(ready_ns);
                    waits.longest_ns = waits.longest_ns.max(ready_ns);
                }
            }
        }
        let threads = threads
            .into_iter()
            .map(|((row, id), waits)| (row, id, waits));
        let mut threads: Vec<_> = threads.collect();
        threads.sort_unstable_by_key(|(row, id, waits)| (Reverse(waits.ready_ns), *id, *row));
        Ok(Victims(threads))
    }

    /// Who lost most.
    pub(super) fn sentence(&self, case: &Case<'_>) -> String {
        let Some((row, id, waits)) = self.0.first() else {
            return String::new();
        };
        let threads = match self.0.len() {
            1 => String::new(),
            n => format!("{} threads, most of all ", grouped(n as u64)),
        };
        format!(
            " Who should run there had to wait: {threads}thread {id} of {} {}, for {} in all and {} \
             at most.",
            case.process(*row, None),
            match waits.count {
                1 => "once".to_owned(),
                count => format!("{} times", grouped(count.unsigned_abs())),
            },
            duration(waits.ready_ns),
            duration(waits.longest_ns)
        )
    }

    pub(super) fn evidence(&self, case: &Case<'_>, flood: &Flood) -> Option<Evidence> {
        if self.0.is_empty() {
            return None;
        }
        let Range { start, end } = flood.during;
        let cpus: Vec<String> = flood.cpus.iter().map(u16::to_string).collect();
        let query = format!(
            "SELECT process(process_row) AS process, thread_id, count(*) AS waits, sum(ready_ns) AS \
             ready_ns, max(ready_ns) AS longest_ns FROM cpu_runs WHERE (cpu IN ({0}) OR \
             ideal_processor IN ({0})) AND start_ns >= {start} AND start_ns < {end} AND ready_ns >= {HELD_UP_NS} AND thread_id <> 0 GROUP BY \
             process_row, thread_id ORDER BY ready_ns DESC, thread_id, process_row NULLS FIRST LIMIT \
             {SHOWN}",
            cpus.join(", ")
        );
        let columns = [
            Column::new("process", "process", Unit::None),
            Column::new("thread_id", "thread", Unit::None),
            Column::new("waits", "waits", Unit::Count),
            Column::new("ready_ns", "was ready", Unit::Duration),
            Column::new("longest_ns", "longest", Unit::Duration),
        ];
        let title = "Threads that were ready for a millisecond or longer before they ran there, or should \
                     have run there (their ideal processor)";
        let mut evidence = Evidence::new(title, query, &columns);
        for (row, id, waits) in self.0.iter().take(SHOWN) {
            evidence = evidence.row([
                case.process_label(*row).map(Into::into),
                Some((*id).into()),
                Some(waits.count.into()),
                Some(waits.ready_ns.into()),
                Some(waits.longest_ns.into()),
            ]);
        }
        Some(evidence)
    }
}
