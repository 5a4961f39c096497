//! Threads that waited for locked CPUs.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{CpuRunsView, StoreError, Table};

use crate::chain::floods::Flood;
use crate::thresholds::HELD_UP_NS;
use crate::{Case, Evidence, Subject, Unit, duration, grouped};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

/// Number and lengths of a thread's waits for locked CPUs.
#[derive(Clone, Copy, Default)]
struct Waits {
    count: i64,
    ready_ns: i64,
    longest_ns: i64,
}

/// Threads that waited long for locked CPUs, the thread with the longest total wait first. There are two cases. Either
/// the thread ran on a locked CPU after the wait, or it waited in the queue of its ideal processor, and this processor
/// was locked.
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
        // Runs are sorted by their ends. A run that begins in the range may end after it, so all later runs are read.
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

    /// Describes the thread that waited longest in total.
    pub(super) fn sentence(&self, case: &Case<'_>) -> String {
        let Some((row, id, waits)) = self.0.first() else {
            return String::new();
        };
        let process = case.process(*row, None);
        let who = match self.0.len() {
            1 => format!("Thread {id} of {process} had to wait for these CPUs"),
            n => format!(
                "{} threads had to wait for these CPUs. Thread {id} of {process} waited longest",
                grouped(n as u64)
            ),
        };
        format!(
            " {who}: {}, {} in total and {} at most.",
            match waits.count {
                1 => "once".to_owned(),
                count => format!("{} times", grouped(count.unsigned_abs())),
            },
            duration(waits.ready_ns),
            duration(waits.longest_ns)
        )
    }

    /// Returns the thread that waited longest in total, and its process.
    pub(super) fn subjects(&self, case: &Case<'_>) -> Vec<Subject> {
        let Some((row, id, _)) = self.0.first() else {
            return Vec::new();
        };
        let thread = Subject::Thread {
            id: *id,
            row: None,
            process_row: *row,
        };
        let process = case.process_subject(*row, None);
        [Some(thread), process].into_iter().flatten().collect()
    }

    pub(super) fn evidence(&self, case: &Case<'_>, flood: &Flood) -> Option<Evidence> {
        if self.0.is_empty() {
            return None;
        }
        let selection = Selection::new(Table::CpuRuns)
            .within("start_ns", flood.during.clone())
            .filters([
                Condition::Any(vec![
                    Condition::is_one_of("cpu", &flood.cpus),
                    Condition::is_one_of("ideal_processor", &flood.cpus),
                ]),
                Condition::AtLeast("ready_ns", HELD_UP_NS),
                Condition::is_not("thread_id", 0),
            ])
            .group_by(&["process_row", "thread_id"])
            .order(&[
                Order::descending("ready_ns"),
                Order::ascending("thread_id"),
                Order::ascending("process_row").unknown_first(),
            ])
            .limit(SHOWN);
        let title = if case.is_linux() {
            "Threads that were ready for 1 ms or longer before they ran there"
        } else {
            "Threads that were ready for 1 ms or longer before they ran there, or whose ideal processor is there"
        };
        let process = Expression::Process("process_row");
        let (ready, longest) = (Expression::Sum("ready_ns"), Expression::Max("ready_ns"));
        let mut evidence = Evidence::from_selection(title, selection)
            .column("process", "process", Unit::None, process)
            .stored("thread_id", "thread", Unit::None)
            .column("waits", "waits", Unit::Count, Expression::Count)
            .column("ready_ns", "was ready", Unit::Duration, ready)
            .column("longest_ns", "longest", Unit::Duration, longest);
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
