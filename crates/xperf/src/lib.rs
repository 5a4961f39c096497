//! Reports for scripts. Each report has the name and the columns of an action of `xperf` (`xperf -a ACTION`). CSV and
//! JSON output has the column names and units of the crate `tables` instead.
//!
//! Each report is a type with its options. It consists of data: a `Layout` has the columns of a table with their values or
//! sums, and `Recording::rows` selects the rows of a stored table. `Rows::list` writes a line for each row, and `Rows::sums`
//! a line for each group of rows. A report whose values no table stores computes them for each row. Reports read tables
//! chunk by chunk.

mod cpudisk;
mod cswitch;
mod diskio;
mod dpcisr;
mod error;
mod filter;
mod focuschange;
mod hardfault;
mod intervals;
mod layout;
mod marks;
mod place;
mod process;
mod profile;
mod readythread;
mod rows;
mod scheduling_names;
mod stack;
mod sums;
mod writer;

use std::collections::BTreeSet;
use std::ops::Range;

use arrow_array::Array;
use session::TraceTables;
use tables::{CpuRunsView, CpusView, DoubtfulRuns, Identities, Options, StoredTable, Table};

pub use cpudisk::CpuDisk;
pub use cswitch::{CSwitch, Whose};
pub use diskio::DiskIo;
pub use dpcisr::DpcIsr;
pub use error::Error;
pub use filter::Filter;
pub use focuschange::FocusChange;
pub use hardfault::HardFault;
pub use marks::Marks;
pub use place::{By, PlaceOptions};
pub use process::Process;
pub use profile::Profile;
pub use readythread::ReadyThread;
pub use stack::{Stack, Stacked};
pub use writer::{Format, Writer};

/// Report with its options.
pub trait Report {
    /// Returns the tables that the report, its percentages and its warnings read. They are made together, because the
    /// whole trace is read to make any table. The tables of processes and images are always available.
    fn tables(&self) -> Vec<Table>;

    /// Writes the report.
    ///
    /// # Errors
    /// Returns an error if the trace lacks the data, options contradict each other, the output cannot be
    /// written, or the user cancels.
    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error>;
}

/// Input of a report.
pub struct Recording {
    /// Tables of the trace.
    pub tables: TraceTables,
    /// Names of processes, threads and images.
    pub names: Identities,
    /// Requested time range, in nanoseconds since the trace's start. The end is excluded.
    pub range: Range<i64>,
    /// Filter of the rows of the report.
    pub filter: Filter,
}

impl Recording {
    /// Returns the time range to which percentages refer. It is the part of the requested range that lies within the
    /// trace. If the header states no end of the trace, or an end before the last row of `tables`, the last row is the
    /// end.
    fn span(&self, tables: &[&StoredTable]) -> Range<i64> {
        let chunks = tables.iter().flat_map(|table| table.chunks());
        let last_ns = chunks.map(|chunk| chunk.last).max().unwrap_or(0);
        let stated = self.tables.store().info().stated_length_ns;
        let end = stated.unwrap_or(last_ns).max(last_ns);
        let start = self.range.start.clamp(0, end.max(0));
        start..self.range.end.clamp(start, end.max(start))
    }

    /// Returns the time of all CPUs in a time range, in nanoseconds.
    fn cpu_ns(&self, span: &Range<i64>) -> Result<i64, Error> {
        let cpus = self.cpus()?.len();
        Ok((span.end - span.start).saturating_mul(cpus as i64))
    }

    /// Returns a warning if context switches contradict each other. Two successive switches of a CPU contradict each
    /// other if the second switch stops another thread than the thread that the first switch started. Switches between
    /// them are then missing. The whole time between the two switches counts for the thread that the second switch
    /// stops.
    ///
    /// # Errors
    /// Returns an error if the table of runs cannot be read.
    pub fn missing_switches(&self) -> Result<Option<String>, Error> {
        let runs = self.tables.table(Table::CpuRuns)?;
        let (mut count, mut ns) = (0_u64, 0_i64);
        for chunk in runs.chunks_within(self.range.clone()) {
            self.tables.check()?;
            // Most chunks have no contradicting switches, so the other columns are read only if needed.
            let planned = runs.read(chunk, &["planned_thread_id"])?;
            if planned.column(0).null_count() == planned.num_rows() {
                continue;
            }
            let batch = runs.read(chunk, &["end_ns", "cpu_ns", "planned_thread_id"])?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let is_doubtful = view.planned_thread_id.get(row).is_some();
                if is_doubtful && self.range.contains(&view.end_ns[row]) {
                    count += 1;
                    ns = ns.saturating_add(view.cpu_ns[row]);
                }
            }
        }
        Ok((count > 0).then(|| {
            format!(
                "{count} context switches contradict the previous switch on their CPU: switches are \
                 missing, so {:.3} s of CPU time, and waits in it, may belong to other threads",
                ns as f64 / 1e9
            )
        }))
    }

    /// Returns true if events of the trace are lost or damaged.
    fn is_damaged(&self) -> Result<bool, Error> {
        Ok(self.tables.table(Table::Damages)?.rows() > 0)
    }

    /// Returns the long runs that have too few samples. Switches within such runs are probably missing, so the CPU time
    /// of these runs does not count. If no event of the trace is lost or damaged, and no switches contradict each other,
    /// returns no runs.
    fn doubtful_runs(&self) -> Result<DoubtfulRuns, Error> {
        if !self.is_damaged()? && self.missing_switches()?.is_none() {
            return Ok(DoubtfulRuns::default());
        }
        let progress = |_| self.tables.check().is_ok();
        let options = Options {
            progress: &progress,
        };
        Ok(DoubtfulRuns::read(self.tables.store(), options)?)
    }

    /// Returns a warning if the CPU time of some runs does not count, because they have too few samples.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    pub fn left_out_runs(&self) -> Result<Option<String>, Error> {
        let doubtful = self.doubtful_runs()?;
        if doubtful.are_none() {
            return Ok(None);
        }
        let runs = self.tables.table(Table::CpuRuns)?;
        let (mut count, mut ns) = (0_u64, 0_i64);
        for chunk in runs.chunks_within(self.range.clone()) {
            self.tables.check()?;
            let batch = runs.read(chunk, &["start_ns", "cpu_ns", "thread_id"])?;
            let view = CpuRunsView::new(&batch)?;
            for row in (0..view.len()).filter(|row| doubtful.is_unsampled(&view, *row)) {
                count += 1;
                ns = ns.saturating_add(view.cpu_ns[row]);
            }
        }
        Ok((count > 0).then(|| {
            format!(
                "CPU times exclude {:.3} s in runs of 0.1 s or more that have too few samples, because events are \
                 missing; number of these runs: {count}",
                ns as f64 / 1e9
            )
        }))
    }

    /// Returns the CPUs to which percentages refer: the CPUs that the trace's header counts, and all others that logged
    /// events. Headers can count too few CPUs.
    ///
    /// # Errors
    /// Returns an error if the table of CPUs cannot be made or read.
    pub fn cpus(&self) -> Result<BTreeSet<u16>, Error> {
        let header = self.tables.store().info().header();
        let counted = header.and_then(|header| header.processors).unwrap_or(0);
        let mut cpus: BTreeSet<u16> = (0..counted as u16).collect();
        let table = self.tables.table(Table::Cpus)?;
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &["cpu", "has_events"])?;
            let view = CpusView::new(&batch)?;
            let rows = (0..view.len()).filter(|row| view.has_events.get(*row) == Some(true));
            cpus.extend(rows.map(|row| view.cpu[row]));
        }
        Ok(cpus)
    }
}

/// Returns `part` as a percentage of `whole`. Returns 0 if `whole` is not positive.
fn percent(part: i64, whole: i64) -> f64 {
    match whole {
        ..=0 => 0.0,
        whole => part as f64 * 100.0 / whole as f64,
    }
}
