//! Lengths of short sleeps.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Selection};
use tables::{CpuRunsView, StoreError, Table};

use crate::thresholds::SHORT_SLEEP_NS;
use crate::{Case, Column, Evidence, Unit};

/// Maximum number of time ranges in a query.
const STRETCHES: usize = 20;

/// Short sleep of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub(super) thread_id: u32,
    pub(super) began_ns: i64,
    pub(super) ns: i64,
}

impl Sleep {
    pub(super) fn end_ns(&self) -> i64 {
        self.began_ns.saturating_add(self.ns)
    }
}

/// Reads the short sleeps of each process, by row in `processes`, in the order of their ends. Threads whose sleeps are
/// mostly long are left out: they intend long sleeps, so the lengths of their short sleeps show nothing.
pub(super) fn read(
    case: &Case<'_>,
    from_ns: i64,
) -> Result<FxHashMap<u32, Vec<Sleep>>, StoreError> {
    let columns = [
        "end_ns",
        "thread_id",
        "process_row",
        "previous_out_ns",
        "since_last_ns",
        "previous_state",
        "previous_wait_reason",
    ];
    let table = case.table(Table::CpuRuns)?;
    let mut by_process: FxHashMap<u32, Vec<Sleep>> = FxHashMap::default();
    // For each thread: the number of its short sleeps minus the number of its long sleeps.
    let mut balances: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for batch in case.batches(&table, from_ns..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let is_sleep = matches!(view.previous_wait_reason.get(row), Some(4 | 11))
                && view.previous_state.get(row) == Some(5);
            let began_ns = view.previous_out_ns.get(row);
            let slept = view.since_last_ns.get(row);
            if view.end_ns[row] >= from_ns
                && let (true, Some(process), Some(began_ns), Some(ns)) =
                    (is_sleep, view.process_row.get(row), began_ns, slept)
            {
                let thread_id = view.thread_id[row];
                let balance = balances.entry((process, thread_id)).or_default();
                *balance += if ns < SHORT_SLEEP_NS { 1 } else { -1 };
                if ns < SHORT_SLEEP_NS {
                    by_process.entry(process).or_default().push(Sleep {
                        thread_id,
                        began_ns,
                        ns,
                    });
                }
            }
        }
    }
    for (process, sleeps) in &mut by_process {
        sleeps.retain(|sleep| {
            let balance = balances.get(&(*process, sleep.thread_id));
            balance.is_some_and(|balance| *balance >= 0)
        });
    }
    Ok(by_process)
}

/// Sums over short sleeps that began within time ranges. The sleeps belong to a process, or to one of its
/// threads.
#[derive(Clone, Debug)]
pub(super) struct Sleeper {
    pub(super) process_row: u32,
    /// Id of the thread if the sleeps are consecutive sleeps of one thread. It is `None` if the sleeps belong
    /// to the whole process.
    thread_id: Option<u32>,
    within: Vec<Range<i64>>,
    pub(super) sleeps: usize,
    pub(super) median_ns: f64,
    shortest_ns: i64,
    /// Start of the first sleep.
    pub(super) from_ns: i64,
    /// End of the last sleep.
    pub(super) to_ns: i64,
}

/// Returns the sleeps that began within the ranges. If there are more than `STRETCHES` ranges, removes the
/// shorter ranges from `stretches` first.
pub(super) fn within(sleeps: &[Sleep], stretches: &mut Vec<Range<i64>>) -> Vec<Sleep> {
    if stretches.len() > STRETCHES {
        stretches.sort_by_key(|range| Reverse(range.end.saturating_sub(range.start)));
        stretches.truncate(STRETCHES);
        stretches.sort_by_key(|range| range.start);
    }
    let is_within = |sleep: &&Sleep| {
        let after = stretches.partition_point(|range| range.start <= sleep.began_ns);
        let range = after.checked_sub(1).and_then(|at| stretches.get(at));
        range.is_some_and(|range| sleep.began_ns < range.end)
    };
    sleeps.iter().filter(is_within).copied().collect()
}

/// Returns the longest series of consecutive sleeps of one thread for which the condition holds.
pub(super) fn longest_row(sleeps: &[Sleep], holds: impl Fn(&Sleep) -> bool) -> Vec<Sleep> {
    let mut open: FxHashMap<u32, Vec<Sleep>> = FxHashMap::default();
    let mut longest: Vec<Sleep> = Vec::new();
    let mut keep = |row: &mut Vec<Sleep>| {
        if row.len() > longest.len() {
            longest = std::mem::take(row);
        }
        row.clear();
    };
    for sleep in sleeps {
        let row = open.entry(sleep.thread_id).or_default();
        if holds(sleep) {
            row.push(*sleep)
        } else {
            keep(row)
        }
    }
    let mut rest: Vec<(u32, Vec<Sleep>)> = open.into_iter().collect();
    rest.sort_unstable_by_key(|(thread_id, _)| *thread_id);
    rest.iter_mut().for_each(|(_, row)| keep(row));
    longest
}

impl Sleeper {
    /// Sums up sleeps that began within time ranges. There must be at least one sleep.
    pub(super) fn new(process_row: u32, sleeps: &[Sleep], within: Vec<Range<i64>>) -> Sleeper {
        let mut lengths: Vec<i64> = sleeps.iter().map(|sleep| sleep.ns).collect();
        Sleeper {
            process_row,
            thread_id: None,
            within,
            sleeps: sleeps.len(),
            median_ns: median(&mut lengths),
            shortest_ns: lengths.iter().copied().min().unwrap_or(0),
            from_ns: sleeps.iter().map(|sleep| sleep.began_ns).min().unwrap_or(0),
            to_ns: sleeps.iter().map(Sleep::end_ns).max().unwrap_or(0),
        }
    }

    /// Sums up consecutive sleeps of one thread.
    pub(super) fn of_row(process_row: u32, row: &[Sleep]) -> Sleeper {
        let (first, last) = (row[0], row[row.len() - 1]);
        let within = first.began_ns..last.began_ns.saturating_add(1);
        Sleeper {
            thread_id: Some(first.thread_id),
            ..Sleeper::new(process_row, row, vec![within])
        }
    }

    /// Returns true if the sleeps are consecutive sleeps of one thread.
    pub(super) fn is_row(&self) -> bool {
        self.thread_id.is_some()
    }

    /// Returns an SQL condition on rows of `cpu_runs`. It selects the runs that end the sleeps.
    fn condition(&self) -> String {
        let within = self.within.iter().map(|range| match range.end {
            i64::MAX => format!("previous_out_ns >= {}", range.start),
            end => format!(
                "previous_out_ns >= {} AND previous_out_ns < {end}",
                range.start
            ),
        });
        let within: Vec<String> = within.collect();
        let within = match within.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(" OR ")),
        };
        let thread =
            (self.thread_id).map_or_else(String::new, |id| format!(" AND thread_id = {id}"));
        format!("process_row = {}{thread} AND {within}", self.process_row)
    }
}

/// Returns the median: the middle number, or the mean of the two numbers in the middle.
fn median(numbers: &mut [i64]) -> f64 {
    let middle = numbers.len() / 2;
    let is_even = numbers.len().is_multiple_of(2);
    let (below, high, _) = numbers.select_nth_unstable(middle);
    match below.iter().max().filter(|_| is_even) {
        Some(low) => (*low as f64 + *high as f64) / 2.0,
        None => *high as f64,
    }
}

/// Returns evidence with the short sleeps of processes.
pub(super) fn evidence(case: &Case<'_>, sleepers: &[&Sleeper], from_ns: i64) -> Evidence {
    const SHOWN: usize = 10;
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("sleeps", "short sleeps", Unit::Count),
        Column::new("median_ns", "median", Unit::Duration),
        Column::new("shortest_ns", "shortest", Unit::Duration),
        Column::new("from_ns", "from", Unit::Moment),
        Column::new("to_ns", "to", Unit::Moment),
    ];
    let shown = &sleepers[..sleepers.len().min(SHOWN)];
    let of_them: Vec<String> = shown
        .iter()
        .map(|sleeper| format!("({})", sleeper.condition()))
        .collect();
    let query = format!(
        "SELECT process(process_row) AS process, count(*) AS sleeps, median(since_last_ns) AS \
         median_ns, min(since_last_ns) AS shortest_ns, min(previous_out_ns) AS from_ns, \
         max(previous_out_ns + since_last_ns) AS to_ns FROM (SELECT *, sum(CASE WHEN since_last_ns < \
         {SHORT_SLEEP_NS} THEN 1 ELSE -1 END) OVER (PARTITION BY process_row, thread_id) AS balance FROM \
         cpu_runs WHERE previous_state = 5 AND previous_wait_reason IN (4, 11) AND since_last_ns IS \
         NOT NULL AND previous_out_ns IS NOT NULL AND end_ns >= {from_ns}) WHERE since_last_ns < \
         {SHORT_SLEEP_NS} AND balance >= 0 AND ({}) GROUP BY process_row ORDER BY sleeps DESC, process_row",
        of_them.join(" OR ")
    );
    let rows: Vec<u32> = shown.iter().map(|sleeper| sleeper.process_row).collect();
    let sleeping = Selection::new(Table::CpuRuns)
        .column("process", Expression::Process("process_row"))
        .column("since_last_ns", Expression::Sum("since_last_ns"))
        .filters([
            Condition::is_one_of("process_row", &rows),
            Condition::is("previous_state", 5),
            Condition::is_one_of("previous_wait_reason", &[4, 11]),
            Condition::Below("since_last_ns", SHORT_SLEEP_NS),
        ])
        .group_by(&["process_row"]);
    let mut evidence = Evidence::new("Sleeps shorter than 20 ms", query, &columns).about(sleeping);
    for sleeper in shown {
        evidence = evidence.row([
            case.process_label(Some(sleeper.process_row))
                .map(Into::into),
            Some((sleeper.sleeps as u64).into()),
            Some(sleeper.median_ns.into()),
            Some(sleeper.shortest_ns.into()),
            Some(sleeper.from_ns.into()),
            Some(sleeper.to_ns.into()),
        ]);
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(thread_id: u32, began_ns: i64, ns: i64) -> Sleep {
        Sleep {
            thread_id,
            began_ns,
            ns,
        }
    }

    #[test]
    fn rows_are_of_one_thread() {
        let sleeps = [
            sleep(1, 0, 15),
            sleep(2, 0, 1),
            sleep(1, 20, 15),
            sleep(2, 5, 15),
            sleep(1, 40, 1),
            sleep(1, 50, 15),
        ];
        let row = longest_row(&sleeps, |sleep| sleep.ns == 15);
        let began: Vec<i64> = row.iter().map(|sleep| sleep.began_ns).collect();
        assert_eq!(began, [0, 20]);
    }

    #[test]
    fn sleeps_count_where_they_began() {
        let sleeps = [sleep(1, 0, 9), sleep(1, 10, 9), sleep(1, 20, 9)];
        let sleeps_inside = within(&sleeps, &mut vec![5..20, 30..40]);
        assert_eq!(sleeps_inside.len(), 1);
        assert_eq!(sleeps_inside[0].end_ns(), 19);
    }
}
