//! How long DPCs and service routines interrupted runs of threads: switches tell nothing of them, so
//! that their time counts as the thread's.

use std::collections::VecDeque;
use std::ops::Range;

use tables::{InterruptsView, StoreError, StoredTable, Table};

use super::limit_ns;
use crate::Case;

/// Routines that hold up the thread under way, taken in step with the runs of their CPU. Runs must
/// come in the order of their ends.
pub(crate) struct Interrupted<'c> {
    case: &'c Case<'c>,
    table: StoredTable,
    chunks: Range<usize>,
    during: Range<i64>,
    /// Until when all that ended is read.
    reached: i64,
    /// By CPU: end and time of routines that no run was asked for yet.
    ended: Vec<VecDeque<(i64, i64)>>,
}

const COLUMNS: [&str; 4] = ["end_ns", "cpu", "kind", "exclusive_ns"];

/// The kinds that hold up the thread under way, for SQL: those that Microsoft's guidance limits.
const KINDS: &str = "'dpc', 'timer_dpc', 'io_timer', 'isr', 'msi'";

impl<'c> Interrupted<'c> {
    /// Routines that ended after the range's start and no later than its end.
    pub(crate) fn new(case: &'c Case<'c>, during: Range<i64>) -> Result<Self, StoreError> {
        let table = case.table(Table::Interrupts)?;
        Ok(Interrupted {
            case,
            chunks: table.chunks_within(during.start..during.end.saturating_add(1)),
            table,
            during,
            reached: i64::MIN,
            ended: Vec::new(),
        })
    }

    /// How long routines interrupted a run on that CPU that ends then: all that ended since the
    /// CPU's last run, but no more than so long.
    pub(crate) fn of_run(
        &mut self,
        cpu: u16,
        end_ns: i64,
        at_most_ns: i64,
    ) -> Result<i64, StoreError> {
        while self.reached < end_ns
            && let Some(chunk) = self.chunks.next()
        {
            self.read(chunk)?;
        }
        let mut inside_ns = 0_i64;
        if let Some(ended) = self.ended.get_mut(usize::from(cpu)) {
            while let Some((_, ns)) = ended.pop_front_if(|(ended_ns, _)| *ended_ns <= end_ns) {
                inside_ns = inside_ns.saturating_add(ns);
            }
        }
        Ok(inside_ns.min(at_most_ns))
    }

    fn read(&mut self, chunk: usize) -> Result<(), StoreError> {
        self.case.check()?;
        let batch = self.table.read(chunk, &COLUMNS)?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let end_ns = view.end_ns[row];
            self.reached = self.reached.max(end_ns);
            let holds_up = view
                .kind
                .get(row)
                .is_some_and(|kind| limit_ns(kind).is_some());
            let Some(ns) = view.exclusive_ns.get(row).filter(|_| holds_up) else {
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

/// The believed runs of threads other than idle ones in SQL, what follows `FROM`: `cpu_ns` is the
/// thread's own, `inside_ns` that of the routines that interrupted it, both within the range if
/// there is one.
pub(crate) fn query(case: &Case<'_>, range: Option<&Range<i64>>) -> String {
    let survey = &case.survey;
    let (cpu_ns, reaches, ended) = match range {
        None => ("cpu_ns".to_owned(), String::new(), String::new()),
        Some(Range { start, end }) => (
            format!("least(end_ns, {end}) - greatest(start_ns, {start})"),
            format!(" WHERE least(end_ns, {end}) > greatest(start_ns, {start})"),
            format!(" AND end_ns > {start} AND end_ns <= {end}"),
        ),
    };
    let counts = format!(
        "CASE WHEN {} THEN 1 ELSE 0 END AS counts",
        survey.doubtful.is_believed()
    );
    let runs = format!(
        "SELECT cpu, start_ns, end_ns, {cpu_ns} AS ran_ns, process_row, process_id, priority, \
         ready_ns, {counts}, 1 AS is_run, 0 AS took_ns FROM cpu_runs{reaches}"
    );
    if survey.interrupts.routines.is_empty() {
        return format!(
            "(SELECT *, ran_ns AS cpu_ns, 0 AS inside_ns FROM ({runs}) WHERE counts = 1)"
        );
    }
    // Beside each run what all routines took until its end, less what they did until the end of the
    // one before on its CPU.
    format!(
        "(SELECT *, ran_ns - inside_ns AS cpu_ns FROM (SELECT *, least(ran_ns, so_far_ns - \
         lag(so_far_ns, 1, 0) OVER (PARTITION BY cpu ORDER BY end_ns, start_ns)) AS inside_ns FROM \
         (SELECT *, sum(took_ns) OVER (PARTITION BY cpu ORDER BY end_ns, is_run, start_ns ROWS \
         BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far_ns FROM ({runs} UNION ALL SELECT \
         cpu, end_ns AS start_ns, end_ns, NULL AS ran_ns, NULL AS process_row, NULL AS process_id, \
         NULL AS priority, NULL AS ready_ns, 0 AS counts, 0 AS is_run, coalesce(exclusive_ns, 0) AS \
         took_ns FROM interrupts WHERE kind IN ({KINDS}){ended})) WHERE is_run = 1) WHERE counts = 1)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
