//! Runs that were several in truth: switches within them are missing.

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, SamplesView, StoreError, Table};

use crate::{Case, Column, Evidence, Finding, Unit, duration, grouped};

/// How long a run is at least for samples to vouch for it: there are a hundred of them as a rule.
const LONG_NS: i64 = 100_000_000;

/// A sample stands for the time since the one before it on its CPU; of what is longer than this it
/// tells nothing.
const VOUCHED_NS: i64 = 50_000_000;

/// Runs that samples do not vouch for and that are told one by one; the longest.
const KEPT: usize = 64;

/// Runs of threads other than idle ones that are not believed: another thread was announced than
/// the one that ended them; or events are known to be missing, and samples tell of less than half
/// of a long run. Who had the CPU meanwhile is not known, so that they are in no sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubtful {
    /// How many there are.
    pub runs: u64,
    /// How long they were together, in nanoseconds.
    pub cpu_ns: i64,
    /// Events are lost, and there are no samples to tell what runs they are missing from.
    pub is_unchecked: bool,
    /// When those began that samples do not vouch for, rising.
    unsampled: Vec<i64>,
}

impl Doubtful {
    /// The tables that are read, beside the runs.
    pub(super) const TABLES: [Table; 2] = [Table::Damages, Table::Samples];

    /// Finds the runs that samples do not vouch for; the others are found on the way.
    pub(super) fn read(case: &Case<'_>) -> Result<Doubtful, StoreError> {
        let runs = case.table(Table::CpuRuns)?;
        let is_damaged = case.has(Table::Damages)? && runs.rows() > 0;
        if !case.has(Table::Samples)? {
            return Ok(Doubtful {
                is_unchecked: is_damaged,
                ..Doubtful::default()
            });
        }
        let mut is_incomplete = is_damaged;
        // Of each CPU: start, end, and the time that samples stand for.
        let mut long: FxHashMap<u16, Vec<(i64, i64, i64)>> = FxHashMap::default();
        let columns = [
            "start_ns",
            "cpu_ns",
            "cpu",
            "thread_id",
            "planned_thread_id",
        ];
        for batch in case.batches(&runs, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                is_incomplete |= view.planned_thread_id.get(row).is_some();
                if view.cpu_ns[row] >= LONG_NS && view.thread_id[row] != 0 {
                    let (start, cpu_ns) = (view.start_ns[row], view.cpu_ns[row]);
                    let runs = long.entry(view.cpu[row]).or_default();
                    runs.push((start, start.saturating_add(cpu_ns), 0));
                }
            }
        }
        if !is_incomplete || long.is_empty() {
            return Ok(Doubtful::default());
        }
        // In the order of their ends; runs of one CPU do not overlap, so of their starts too.
        let samples = case.table(Table::Samples)?;
        let mut tells = false;
        for batch in case.batches(
            &samples,
            i64::MIN..i64::MAX,
            &["time_ns", "cpu", "weight_ns"],
        ) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                let Some(weight_ns) = view.weight_ns.get(row) else {
                    continue;
                };
                tells = true;
                let Some(runs) = long.get_mut(&view.cpu[row]) else {
                    continue;
                };
                let time = view.time_ns[row];
                let place = runs.partition_point(|(start, ..)| *start <= time);
                let before = place.checked_sub(1).and_then(|place| runs.get_mut(place));
                if let Some((_, _, told)) = before.filter(|(_, end, _)| time <= *end) {
                    *told = told.saturating_add(weight_ns.min(VOUCHED_NS));
                }
            }
        }
        let mut unsampled: Vec<(i64, i64)> = long
            .into_values()
            .flatten()
            .map(|(start, end, told)| (end - start, start, told))
            .filter(|(length, _, told)| tells && told.saturating_mul(2) < *length)
            .map(|(length, start, _)| (length, start))
            .collect();
        unsampled.sort_unstable_by_key(|(length, start)| (std::cmp::Reverse(*length), *start));
        let mut unsampled: Vec<i64> = unsampled.iter().take(KEPT).map(|(_, at)| *at).collect();
        unsampled.sort_unstable();
        Ok(Doubtful {
            is_unchecked: is_damaged && !tells,
            unsampled,
            ..Doubtful::default()
        })
    }

    /// Whether a run is one of them. `start_ns`, `cpu_ns`, `thread_id` and `planned_thread_id` must
    /// be among the columns.
    pub fn is(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        let is_unsampled = |row: usize| {
            runs.cpu_ns[row] >= LONG_NS && self.unsampled.binary_search(&runs.start_ns[row]).is_ok()
        };
        runs.thread_id[row] != 0
            && (runs.planned_thread_id.get(row).is_some()
                || !self.unsampled.is_empty() && is_unsampled(row))
    }

    /// Counts a run that is one of them.
    pub(super) fn count(&mut self, cpu_ns: i64) {
        self.runs += 1;
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
    }

    /// What a run must be to be one of them, in SQL.
    pub(crate) fn condition(&self) -> String {
        let starts: Vec<String> = self.unsampled.iter().map(i64::to_string).collect();
        let unsampled = match starts.is_empty() {
            true => String::new(),
            false => format!(
                " OR cpu_ns >= {LONG_NS} AND start_ns IN ({})",
                starts.join(", ")
            ),
        };
        format!("thread_id <> 0 AND (planned_thread_id IS NOT NULL{unsampled})")
    }

    /// What a run of a thread must be not to be one of them, in SQL.
    pub fn is_believed(&self) -> String {
        match self.runs {
            0 => "thread_id <> 0".to_owned(),
            _ => format!("thread_id <> 0 AND NOT ({})", self.condition()),
        }
    }

    /// The finding, with what is doubtful of its sums of CPU time.
    pub(crate) fn doubted(&self, finding: Finding) -> Finding {
        if self.runs == 0 {
            return match self.is_unchecked {
                true => finding.doubt(
                    "Something is lost or broken, and no samples tell which runs of threads lasted \
                     over a gap: sums of CPU time may be too large, or too small",
                ),
                false => finding,
            };
        }
        let query = format!(
            "SELECT count(*) AS runs, sum(cpu_ns) AS cpu_ns FROM cpu_runs WHERE {}",
            self.condition()
        );
        let columns = [
            Column::new("runs", "runs", Unit::Count),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
        ];
        let evidence = Evidence::new("Runs within which switches are missing", query, &columns)
            .row([Some(self.runs.into()), Some(self.cpu_ns.into())]);
        let lasted = duration(self.cpu_ns);
        let left_out = match self.runs {
            1 => format!("A run of {lasted} is left out: switches within it are missing"),
            many => format!(
                "{} runs of {lasted} in all are left out: switches within them are missing",
                grouped(many)
            ),
        };
        finding.with(evidence).doubt(format!(
            "{left_out}, so that who had the CPUs meanwhile is not known; tables, and the graphs of `laglab open`, have them \
             as they are recorded"
        ))
    }
}
