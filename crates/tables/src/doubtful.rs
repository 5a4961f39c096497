//! Doubtful runs. A doubtful run may really be several runs, because context switches within the run are
//! missing.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;

use crate::{Cancelled, CpuRunsView, Options, SamplesView, Store, StoreError, StoredTable, Table};

/// Minimum length in nanoseconds of a run that is compared with samples. At the default sampling
/// rate, a run of this length has 100 samples.
const LONG_NS: i64 = 100_000_000;

/// Maximum time in nanoseconds that a sample represents, if events are missing. A sample represents the time
/// since the previous sample of the same CPU.
pub const MAX_WEIGHT_NS: i64 = 50_000_000;

/// Maximum number of listed runs that have too few samples. If there are more such runs, only the longest
/// runs are listed.
const LISTED: usize = 64;

/// Doubtful runs of threads other than idle threads. A run is doubtful if the switch at its end
/// names another thread than the switch at its start. A long run is also doubtful if events are
/// missing from the trace and samples cover less than half of the run. During a doubtful run, other
/// threads may have had the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoubtfulRuns {
    /// True if events are lost and no sample has a weight. Long runs with missing switches then cannot be found.
    pub is_unchecked: bool,
    /// True if there is a run with contradicting switches: the switch at its end names another thread than
    /// the switch at its start.
    has_contradictions: bool,
    /// Start times of the long runs that have too few samples, in ascending order.
    unsampled: Vec<i64>,
}

impl DoubtfulRuns {
    /// Tables that `DoubtfulRuns::read` uses.
    pub const TABLES: [Table; 3] = [Table::CpuRuns, Table::Damages, Table::Samples];
    /// Columns of `cpu_runs` that [`DoubtfulRuns::is`] needs.
    pub const COLUMNS: [&'static str; 4] = ["start_ns", "cpu_ns", "thread_id", "planned_thread_id"];

    /// Finds the doubtful runs of a trace.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or [`Options::progress`] asks to stop.
    pub fn read(store: &Store, options: Options<'_>) -> Result<DoubtfulRuns, StoreError> {
        store.make(&DoubtfulRuns::TABLES, options)?;
        let table = |table| store.table(table, options);
        let (runs, samples) = (table(Table::CpuRuns)?, table(Table::Samples)?);
        let is_damaged = table(Table::Damages)?.rows() > 0 && runs.rows() > 0;
        let mut doubtful = DoubtfulRuns::default();
        // The reported progress is the size of the whole trace, because the whole trace was already read to
        // make the tables.
        let go_on = || {
            if (options.progress)(store.info().size_bytes) {
                Ok(())
            } else {
                Err(StoreError::from(Cancelled))
            }
        };
        let mut long = doubtful.read_runs(&runs, &go_on)?;
        if samples.rows() == 0 {
            doubtful.is_unchecked = is_damaged;
            return Ok(doubtful);
        }
        if !is_damaged && !doubtful.has_contradictions || long.is_empty() {
            return Ok(doubtful);
        }
        if add_samples(&mut long, &samples, &go_on)? {
            doubtful.unsampled = unsampled(long);
        } else {
            doubtful.is_unchecked = is_damaged;
        }
        Ok(doubtful)
    }

    /// Looks for contradictions, and returns the long runs of each CPU. The rows are sorted by the ends of the runs.
    /// The runs of a CPU do not overlap. So the rows are also sorted by the starts of the runs.
    fn read_runs(
        &mut self,
        runs: &StoredTable,
        go_on: &dyn Fn() -> Result<(), StoreError>,
    ) -> Result<LongRuns, StoreError> {
        let mut long = LongRuns::default();
        let columns = [&DoubtfulRuns::COLUMNS[..], &["cpu"]].concat();
        for batch in batches(runs, &columns) {
            let batch = batch?;
            go_on()?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                self.has_contradictions |= view.planned_thread_id.get(row).is_some();
                if view.cpu_ns[row] >= LONG_NS && view.thread_id[row] != 0 {
                    let (start_ns, cpu_ns) = (view.start_ns[row], view.cpu_ns[row]);
                    let of_cpu = long.entry(view.cpu[row]).or_default();
                    of_cpu.push(LongRun {
                        start_ns,
                        end_ns: start_ns.saturating_add(cpu_ns),
                        sampled_ns: 0,
                    });
                }
            }
        }
        Ok(long)
    }

    /// Returns true if the trace has no doubtful run.
    pub fn are_none(&self) -> bool {
        !self.has_contradictions && self.unsampled.is_empty()
    }

    /// Returns true if a run is doubtful. The view must have [`DoubtfulRuns::COLUMNS`].
    pub fn is(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        let is_contradicted = runs.thread_id[row] != 0 && runs.planned_thread_id.get(row).is_some();
        is_contradicted || self.is_unsampled(runs, row)
    }

    /// Returns true if a long run has too few samples. The view must have the columns `start_ns`,
    /// `cpu_ns` and `thread_id`.
    pub fn is_unsampled(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        !self.unsampled.is_empty()
            && runs.thread_id[row] != 0
            && runs.cpu_ns[row] >= LONG_NS
            && self.unsampled.binary_search(&runs.start_ns[row]).is_ok()
    }

    /// Returns the SQL condition for doubtful runs.
    pub fn condition(&self) -> String {
        let starts: Vec<String> = self.unsampled.iter().map(i64::to_string).collect();
        let unsampled = if starts.is_empty() {
            String::new()
        } else {
            format!(
                " OR cpu_ns >= {LONG_NS} AND start_ns IN ({})",
                starts.join(", ")
            )
        };
        format!("thread_id <> 0 AND (planned_thread_id IS NOT NULL{unsampled})")
    }
}

#[derive(Clone, Copy, Debug)]
struct LongRun {
    start_ns: i64,
    end_ns: i64,
    /// Time in nanoseconds that the samples within the run represent.
    sampled_ns: i64,
}

/// Long runs by CPU.
type LongRuns = FxHashMap<u16, Vec<LongRun>>;

/// Adds the time that each sample represents to the run that contains the sample. Returns true if at least one sample
/// has a weight.
fn add_samples(
    long: &mut LongRuns,
    samples: &StoredTable,
    go_on: &dyn Fn() -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let mut has_weights = false;
    for batch in batches(samples, &["time_ns", "cpu", "weight_ns"]) {
        let batch = batch?;
        go_on()?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let Some(weight_ns) = view.weight_ns.get(row) else {
                continue;
            };
            has_weights = true;
            let runs = view.cpu.get(row).and_then(|cpu| long.get_mut(&cpu));
            let Some(runs) = runs else {
                continue;
            };
            let time_ns = view.time_ns[row];
            let after = runs.partition_point(|run| run.start_ns <= time_ns);
            let run = after.checked_sub(1).and_then(|at| runs.get_mut(at));
            if let Some(run) = run.filter(|run| time_ns <= run.end_ns) {
                let weight_ns = weight_ns.min(MAX_WEIGHT_NS);
                run.sampled_ns = run.sampled_ns.saturating_add(weight_ns);
            }
        }
    }
    Ok(has_weights)
}

/// Returns the sorted start times of runs for which samples cover less than half of the run. If there are too
/// many such runs, returns only the longest runs.
fn unsampled(long: LongRuns) -> Vec<i64> {
    let runs = long.into_values().flatten();
    let mut unsampled: Vec<(i64, i64)> = runs
        .map(|run| (run.end_ns - run.start_ns, run))
        .filter(|(length, run)| run.sampled_ns.saturating_mul(2) < *length)
        .map(|(length, run)| (length, run.start_ns))
        .collect();
    unsampled.sort_unstable_by_key(|(length, start)| (std::cmp::Reverse(*length), *start));
    let mut starts: Vec<i64> = unsampled.iter().take(LISTED).map(|(_, at)| *at).collect();
    starts.sort_unstable();
    starts
}

/// Reads the named columns of all row groups of a table.
fn batches<'t>(
    table: &'t StoredTable,
    columns: &'t [&'t str],
) -> impl Iterator<Item = Result<RecordBatch, StoreError>> + 't {
    (0..table.chunks().len()).map(|group| table.read(group, columns))
}
