//! Time for which DPCs and service routines interrupted runs of threads. Context switches do not
//! record this time, so it is part of the length of the thread's run.

use std::collections::VecDeque;
use std::ops::Range;

use selection::{Condition, Expression, Selection};
use tables::{InterruptsView, StoreError, StoredTable, Table};

use super::blocks_thread;
use crate::system::run_priority_sql;
use crate::{Case, Column, Evidence, Reader, Unit};

/// Reader of the DPCs and service routines that interrupted runs of threads. Pass the runs in the
/// order of their end times.
pub struct InterruptReader<'c> {
    reader: &'c Reader<'c>,
    table: StoredTable,
    chunks: Range<usize>,
    during: Range<i64>,
    /// Latest end of a routine in the rows that were read so far.
    reached: i64,
    /// For each CPU: the routines that were not assigned to a run yet. Each entry has the end of a routine and its
    /// time without nested routines, in nanoseconds.
    ended: Vec<VecDeque<(i64, i64)>>,
}

const COLUMNS: [&str; 4] = ["end_ns", "cpu", "kind", "exclusive_ns"];

/// Kinds of routines for which [`blocks_thread`] returns true, as a list in SQL.
const KINDS: &str = "'dpc', 'timer_dpc', 'io_timer', 'isr', 'msi'";

impl<'c> InterruptReader<'c> {
    /// Creates a reader of the routines that ended after `during.start`, but not after `during.end`.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn new(reader: &'c Reader<'c>, during: Range<i64>) -> Result<Self, StoreError> {
        let table = reader.table(Table::Interrupts)?;
        Ok(InterruptReader {
            reader,
            chunks: table.chunks_within(during.start..during.end.saturating_add(1)),
            table,
            during,
            reached: i64::MIN,
            ended: Vec::new(),
        })
    }

    /// Returns the time for which routines interrupted a run that ended at `end_ns` on `cpu`. This
    /// is the time of all routines that ended since the CPU's previous run, but at most
    /// `at_most_ns`. Calls `each` with the end and the time of each of these routines.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read, or the user cancelled.
    pub fn of_run(
        &mut self,
        cpu: u16,
        end_ns: i64,
        at_most_ns: i64,
        mut each: impl FnMut(i64, i64),
    ) -> Result<i64, StoreError> {
        while self.reached < end_ns
            && let Some(chunk) = self.chunks.next()
        {
            self.read(chunk)?;
        }
        let mut inside_ns = 0_i64;
        if let Some(ended) = self.ended.get_mut(usize::from(cpu)) {
            while let Some((at_ns, ns)) = ended.pop_front_if(|(at_ns, _)| *at_ns <= end_ns) {
                each(at_ns, ns);
                inside_ns = inside_ns.saturating_add(ns);
            }
        }
        Ok(inside_ns.min(at_most_ns))
    }

    fn read(&mut self, chunk: usize) -> Result<(), StoreError> {
        self.reader.check()?;
        let batch = self.table.read(chunk, &COLUMNS)?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let end_ns = view.end_ns[row];
            self.reached = self.reached.max(end_ns);
            let ns = view.exclusive_ns.get(row);
            let Some(ns) = ns.filter(|_| blocks_thread(&view, row)) else {
                continue;
            };
            if end_ns <= self.during.start || self.during.end < end_ns {
                continue;
            }
            let cpu = usize::from(view.cpu[row]);
            if cpu >= self.ended.len() {
                self.ended.resize_with(cpu + 1, VecDeque::new);
            }
            self.ended[cpu].push_back((end_ns, ns));
        }
        Ok(())
    }
}

/// Returns a selection for a view, grouped by one column. It selects the same runs as [`query`].
pub(crate) fn selection(
    case: &Case<'_>,
    range: Option<&Range<i64>>,
    by: &'static str,
    key: Expression,
) -> Selection {
    let runs = Selection::new(Table::CpuRuns)
        .column(by, key)
        .column("cpu_ns", Expression::TimeWithin)
        .filter(case.survey.doubtful.believed())
        .group_by(&[by]);
    match range {
        None => runs,
        Some(range) => runs.overlapping(std::slice::from_ref(range)),
    }
}

/// Returns an SQL expression, to follow `FROM`, with the runs of threads. Idle threads and doubtful runs are
/// left out. In a row, `cpu_ns` is the thread's own time, and `inside_ns` is the time of the routines that
/// interrupted the thread. Both times are limited to the range.
pub(crate) fn query(case: &Case<'_>, range: Option<&Range<i64>>) -> String {
    rows(case, range, "counts = 1")
}

/// Returns evidence with two times: the total busy time of all CPUs, and the part of the busy time that DPCs
/// and service routines used. Routines that interrupted idle threads are included.
pub(crate) fn totals(
    case: &Case<'_>,
    title: &str,
    range: Option<&Range<i64>>,
    [busy_ns, interrupts_ns]: [i64; 2],
) -> Evidence {
    let columns = [
        Column::new("busy_ns", "busy", Unit::Duration),
        Column::new("interrupts_ns", case.terms().routines_in_it, Unit::Duration),
    ];
    let runs = rows(case, range, "counts > 0");
    let query = format!(
        "SELECT coalesce(sum(CASE WHEN counts = 1 THEN cpu_ns + inside_ns ELSE inside_ns END), 0) \
         AS busy_ns, coalesce(sum(inside_ns), 0) AS interrupts_ns FROM {runs}"
    );
    Evidence::new(title, query, &columns).row([busy_ns, interrupts_ns].map(|ns| Some(ns.into())))
}

/// Returns an SQL subquery, to follow `FROM`, with the runs that meet the condition `which`. The column `counts` is 1
/// for a run of a normal thread, 2 for a run of an idle thread, and 0 for a doubtful run. See [`query`] for the columns
/// `cpu_ns` and `inside_ns`.
fn rows(case: &Case<'_>, range: Option<&Range<i64>>, which: &str) -> String {
    let survey = &case.survey;
    let counts = format!(
        "CASE WHEN {} THEN 1 WHEN {} THEN 2 ELSE 0 END AS counts",
        survey.doubtful.believed().sql(),
        survey.doubtful.idle().sql()
    );
    let has_routines = !survey.interrupts.routines.is_empty();
    let priority = run_priority_sql(case.is_linux());
    counted_runs([&counts, priority], has_routines, range, which)
}

/// Returns an SQL expression, to follow `FROM`, with the runs that `believed` selects. In a row, `cpu_ns` is
/// the thread's own time within the range, and `inside_ns` is the time of the routines that interrupted the
/// thread. `has_routines` is true if the table `interrupts` has rows.
pub fn own_runs(believed: &Condition, has_routines: bool, range: Option<&Range<i64>>) -> String {
    let counts = format!("CASE WHEN {} THEN 1 ELSE 0 END AS counts", believed.sql());
    counted_runs([&counts, "priority"], has_routines, range, "counts = 1")
}

fn counted_runs(
    [counts, priority]: [&str; 2],
    has_routines: bool,
    range: Option<&Range<i64>>,
    which: &str,
) -> String {
    let (cpu_ns, reaches, ended) = match range {
        None => ("cpu_ns".to_owned(), String::new(), String::new()),
        Some(Range { start, end }) => (
            format!("least(end_ns, {end}) - greatest(start_ns, {start})"),
            format!(" WHERE least(end_ns, {end}) > greatest(start_ns, {start})"),
            format!(" AND end_ns > {start} AND end_ns <= {end}"),
        ),
    };
    let runs = format!(
        "SELECT cpu, start_ns, end_ns, {cpu_ns} AS ran_ns, thread_row, process_row, process_id, \
         {priority} AS priority, ready_ns, {counts}, 1 AS is_run, 0 AS took_ns FROM cpu_runs{reaches}"
    );
    if !has_routines {
        return format!("(SELECT *, ran_ns AS cpu_ns, 0 AS inside_ns FROM ({runs}) WHERE {which})");
    }
    // For each run, `inside_ns` is the sum of routine times until the end of the run, minus the
    // same sum until the end of the previous run on the CPU.
    format!(
        "(SELECT *, ran_ns - inside_ns AS cpu_ns FROM (SELECT *, least(ran_ns, so_far_ns - \
         lag(so_far_ns, 1, 0) OVER (PARTITION BY cpu ORDER BY end_ns, start_ns)) AS inside_ns FROM \
         (SELECT *, sum(took_ns) OVER (PARTITION BY cpu ORDER BY end_ns, is_run, start_ns ROWS \
         BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far_ns FROM ({runs} UNION ALL SELECT \
         cpu, end_ns AS start_ns, end_ns, NULL AS ran_ns, NULL AS thread_row, NULL AS process_row, \
         NULL AS process_id, NULL AS priority, NULL AS ready_ns, 0 AS counts, 0 AS is_run, \
         coalesce(exclusive_ns, 0) AS took_ns FROM interrupts WHERE kind IN ({KINDS}){ended})) WHERE \
         is_run = 1) WHERE {which})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_ns;

    #[test]
    fn kinds_that_hold_up_are_those_with_a_limit() {
        for kind in ["dpc", "timer_dpc", "io_timer", "isr", "msi"] {
            assert!(limit_ns(kind).is_some() && KINDS.contains(&format!("'{kind}'")));
        }
        for kind in ["threaded_dpc", "passive_isr"] {
            assert!(limit_ns(kind).is_none() && !KINDS.contains(&format!("'{kind}'")));
        }
    }
}
