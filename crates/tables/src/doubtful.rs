//! Runs that were several in truth: switches within them are missing.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;

use crate::{Cancelled, CpuRunsView, Options, SamplesView, Store, StoreError, StoredTable, Table};

/// How long a run is at least for samples to vouch for it: there are a hundred of them as a rule.
const LONG_NS: i64 = 100_000_000;

/// A sample stands for the time since the one before it on its CPU; of what is longer than this it
/// tells nothing.
const VOUCHED_NS: i64 = 50_000_000;

/// Runs that samples do not vouch for and that are told one by one; the longest.
const KEPT: usize = 64;

/// Which runs of threads other than idle ones are not believed: another thread was announced than
/// the one that ended them; or events are known to be missing, and samples tell of less than half
/// of a long run. Who had the CPU meanwhile is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoubtfulRuns {
    /// Events are lost, and there are no samples to tell what runs they are missing from.
    pub is_unchecked: bool,
    /// A run ended with another thread than was announced.
    has_contradictions: bool,
    /// When those began that samples do not vouch for, rising.
    unsampled: Vec<i64>,
}

impl DoubtfulRuns {
    /// The tables that they are found in.
    pub const TABLES: [Table; 3] = [Table::CpuRuns, Table::Damages, Table::Samples];
    /// The columns of `cpu_runs` that [`DoubtfulRuns::is`] needs.
    pub const COLUMNS: [&'static str; 4] = ["start_ns", "cpu_ns", "thread_id", "planned_thread_id"];

    /// Finds them.
    ///
    /// # Errors
    /// If a table cannot be read, or [`Options::progress`] asks to stop.
    pub fn read(store: &Store, options: Options<'_>) -> Result<DoubtfulRuns, StoreError> {
        store.make(&DoubtfulRuns::TABLES, options)?;
        let table = |table| store.table(table, options);
        let (runs, samples) = (table(Table::CpuRuns)?, table(Table::Samples)?);
        let is_damaged = table(Table::Damages)?.rows() > 0 && runs.rows() > 0;
        let mut found = DoubtfulRuns::default();
        // Of each CPU: start, end, and the time that samples stand for.
        let mut long: FxHashMap<u16, Vec<(i64, i64, i64)>> = FxHashMap::default();
        // All of the trace was read to make the tables.
        let go_on = || match (options.progress)(store.trace().size_bytes()) {
            true => Ok(()),
            false => Err(StoreError::from(Cancelled)),
        };
        let columns = [&DoubtfulRuns::COLUMNS[..], &["cpu"]].concat();
        for batch in batches(&runs, &columns) {
            let batch = batch?;
            go_on()?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                found.has_contradictions |= view.planned_thread_id.get(row).is_some();
                if view.cpu_ns[row] >= LONG_NS && view.thread_id[row] != 0 {
                    let (start, cpu_ns) = (view.start_ns[row], view.cpu_ns[row]);
                    let runs = long.entry(view.cpu[row]).or_default();
                    runs.push((start, start.saturating_add(cpu_ns), 0));
                }
            }
        }
        if samples.rows() == 0 {
            found.is_unchecked = is_damaged;
            return Ok(found);
        }
        if !is_damaged && !found.has_contradictions || long.is_empty() {
            return Ok(found);
        }
        // In the order of their ends; runs of one CPU do not overlap, so of their starts too.
        let mut tells = false;
        for batch in batches(&samples, &["time_ns", "cpu", "weight_ns"]) {
            let batch = batch?;
            go_on()?;
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
        found.unsampled = unsampled.iter().take(KEPT).map(|(_, at)| *at).collect();
        found.unsampled.sort_unstable();
        found.is_unchecked = is_damaged && !tells;
        Ok(found)
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        !self.has_contradictions && self.unsampled.is_empty()
    }

    /// Whether a run is one of them. [`DoubtfulRuns::COLUMNS`] must be among the columns.
    pub fn is(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        let is_unsampled = |row: usize| {
            runs.cpu_ns[row] >= LONG_NS && self.unsampled.binary_search(&runs.start_ns[row]).is_ok()
        };
        runs.thread_id[row] != 0
            && (runs.planned_thread_id.get(row).is_some()
                || !self.unsampled.is_empty() && is_unsampled(row))
    }

    /// What a run must be to be one of them, in SQL.
    pub fn condition(&self) -> String {
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
}

/// The named columns of all chunks of a table.
fn batches<'t>(
    table: &'t StoredTable,
    columns: &'t [&'t str],
) -> impl Iterator<Item = Result<RecordBatch, StoreError>> + 't {
    (0..table.chunks().len()).map(|chunk| table.read(chunk, columns))
}
