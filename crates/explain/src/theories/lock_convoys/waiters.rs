//! Waits of the threads of a convoy.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{StoreError, Table};

use super::convoy::{Convoy, Wait, each_wait, reasons};
use crate::suspend_gaps::asleep_sql;
use crate::thresholds::LOCK_WAIT_NS;
use crate::{Case, Evidence, Unit, labels};

/// Maximum number of rows of evidence.
const SHOWN: usize = 20;

/// Number, total length and maximum length of the waits of a thread.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    pub(super) count: u64,
    pub(super) total_ns: i64,
    pub(super) longest_ns: i64,
}

/// Waits of a convoy, sorted by time.
pub(super) struct Waiters<'c> {
    pub(super) convoy: &'c Convoy,
    pub(super) waits: Vec<Wait>,
    /// Waits by thread. The thread with the longest total wait comes first.
    pub(super) threads: Vec<(u32, Waits)>,
}

impl<'c> Waiters<'c> {
    pub(super) fn read(case: &Case<'_>, convoy: &'c Convoy) -> Result<Waiters<'c>, StoreError> {
        let start = convoy.during.start;
        let mut waits = Vec::new();
        // The run after the last wait may end long after the convoy, so all later runs are read.
        each_wait(case, start..i64::MAX, |wait| {
            if convoy.has(case, &wait) {
                waits.push(wait);
            }
        })?;
        waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
        let mut threads: FxHashMap<u32, Waits> = FxHashMap::default();
        for wait in &waits {
            let waits = threads.entry(wait.thread_id).or_default();
            waits.count += 1;
            waits.total_ns = waits.total_ns.saturating_add(wait.awake_ns);
            waits.longest_ns = waits.longest_ns.max(wait.awake_ns);
        }
        let mut threads: Vec<(u32, Waits)> = threads.into_iter().collect();
        threads.sort_by_key(|(id, waits)| (Reverse(waits.total_ns), *id));
        Ok(Waiters {
            convoy,
            waits,
            threads,
        })
    }

    /// Returns a selection of the rows of the convoy's waits. The second value is the name of the column that
    /// contains the lengths of the waits.
    fn selection(&self, case: &Case<'_>) -> (Selection, &'static str) {
        let Range { start, end } = self.convoy.during;
        let is_shared = self.convoy.is_shared();
        let gaps = case.survey.suspend_gaps.parts_in(&(start..end));
        let selection = Selection::new(Table::CpuRuns)
            .within("readied_ns", start.saturating_add(1)..end.saturating_add(1));
        let (selection, awake_ns) = if gaps.is_empty() {
            (selection, "waits_ns")
        } else {
            let asleep = asleep_sql(&gaps, "readied_ns - waits_ns", "readied_ns");
            let awake_ns = format!("waits_ns - ({asleep})");
            (selection.computed("awake_ns", awake_ns), "awake_ns")
        };
        let [column, readying] = if is_shared {
            ["thread_id", "readying_thread_id"]
        } else {
            ["process_row", "readying_process_row"]
        };
        let members: Vec<u32> = if is_shared {
            self.convoy.thread_ids()
        } else {
            self.convoy.processes.iter().copied().collect()
        };
        let selection = selection.filters([
            Condition::is_one_of(column, &members),
            Condition::is_one_of(readying, &members),
            Condition::IsFalse("readied_by_dpc"),
            Condition::is_one_of("previous_wait_reason", reasons(case, is_shared)),
            Condition::AtLeast(awake_ns, LOCK_WAIT_NS),
        ]);
        // On Linux, threads that wait for something other than a lock have the same state. So the rows are selected by
        // the ends of the waits.
        let selection = match self.convoy.lock {
            None => selection,
            Some(_) => {
                let ends: Vec<i64> = self.waits.iter().map(|wait| wait.readied_ns).collect();
                selection.filter(Condition::is_one_of("readied_ns", &ends))
            }
        };
        (selection, awake_ns)
    }

    pub(super) fn evidence(&self, case: &Case<'_>) -> [Evidence; 3] {
        let (selection, awake_ns) = self.selection(case);
        [
            self.all(selection.clone()),
            self.by_thread(selection.clone(), awake_ns),
            self.handovers(selection, awake_ns),
        ]
    }

    fn all(&self, selection: Selection) -> Evidence {
        let different = Expression::CountDistinct("thread_id");
        let counts = [self.threads.len() as u64, self.waits.len() as u64];
        Evidence::from_selection("All waits", selection)
            .column("threads", "threads", Unit::Count, different)
            .column("times", "waits", Unit::Count, Expression::Count)
            .row(counts.map(|count| Some(count.into())))
    }

    fn by_thread(&self, selection: Selection, awake_ns: &'static str) -> Evidence {
        let selection = selection
            .group_by(&["thread_id"])
            .order(&[
                Order::descending("waited_ns"),
                Order::ascending("thread_id"),
            ])
            .limit(SHOWN);
        let (waited, longest) = (Expression::Sum(awake_ns), Expression::Max(awake_ns));
        let evidence = Evidence::from_selection("Waits by thread", selection)
            .stored("thread_id", "thread", Unit::None)
            .column("waits", "waits", Unit::Count, Expression::Count)
            .column("waited_ns", "waited", Unit::Duration, waited)
            .column("longest_ns", "longest", Unit::Duration, longest);
        let threads = self.threads.iter().take(SHOWN);
        threads.fold(evidence, |evidence, (id, waits)| {
            evidence.row([
                Some((*id).into()),
                Some(waits.count.into()),
                Some(waits.total_ns.into()),
                Some(waits.longest_ns.into()),
            ])
        })
    }

    fn handovers(&self, selection: Selection, awake_ns: &'static str) -> Evidence {
        let selection = selection
            .order(&[
                Order::ascending("readied_ns"),
                Order::ascending("thread_id"),
            ])
            .limit(SHOWN);
        let waited = Expression::Column(awake_ns);
        let reason = Expression::WaitReason("previous_wait_reason");
        let evidence = Evidence::from_selection("Handovers, from thread to thread", selection)
            .stored("readied_ns", "at", Unit::Moment)
            .stored("readying_thread_id", "from thread", Unit::None)
            .stored("thread_id", "to thread", Unit::None)
            .column("waits_ns", "after a wait of", Unit::Duration, waited)
            .column("reason", "wait reason", Unit::None, reason);
        let waits = self.waits.iter().take(SHOWN);
        waits.fold(evidence, |evidence, wait| {
            evidence.row([
                Some(wait.readied_ns.into()),
                Some(wait.by_thread_id.into()),
                Some(wait.thread_id.into()),
                Some(wait.awake_ns.into()),
                Some(labels::wait_reason(wait.reason).into()),
            ])
        })
    }
}
