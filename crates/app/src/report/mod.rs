//! Reports that people script: what `xperf -a ACTION` tells, under the same names and with the same
//! columns, and as CSV or JSON with the columns of our tables.
//!
//! A report is one type: its options, and how it is made of the tables. What all of them share is
//! here and in [`writer`]; they read tables chunk by chunk.

pub(crate) mod cpudisk;
pub(crate) mod cswitch;
pub(crate) mod diskio;
pub(crate) mod dpcisr;
pub(crate) mod focuschange;
pub(crate) mod hardfault;
mod intervals;
pub(crate) mod marks;
mod place;
pub(crate) mod process;
mod process_filter;
pub(crate) mod profile;
mod range;
pub(crate) mod readythread;
pub(crate) mod recorded;
mod scheduling_names;
pub(crate) mod stack;
mod writer;

use std::ops::Range;

use arrow_array::Array;
use tables::{CpuRunsView, Identities, StoredTable, Table};

use crate::cli::{self, Failure, TraceTables};
use crate::watch;
pub(crate) use range::TimeRange;
pub(crate) use writer::Writer;

/// A report: its own options, and how it is made.
pub(crate) trait Report: clap::Args {
    /// The tables that it reads, beside those of processes and images.
    fn tables(&self) -> Vec<Table>;

    /// Makes it.
    ///
    /// # Errors
    /// If the trace does not hold what it rests on, options contradict each other, output cannot
    /// be written, or the user stopped it.
    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure>;
}

/// What a report is made of.
pub(crate) struct Recording {
    /// The trace's tables.
    pub(crate) tables: TraceTables,
    /// Who and what the rows of tables speak of.
    pub(crate) names: Identities,
    /// The time asked for: nanoseconds since the trace's start, the end excluded.
    pub(crate) range: Range<i64>,
}

impl Recording {
    /// From where to where shares of time are counted: the time asked for, within the trace. Where
    /// the trace does not say when it ends, or ends early, that is at the last row of the tables
    /// given.
    fn span(&self, tables: &[&StoredTable]) -> Range<i64> {
        let chunks = tables.iter().flat_map(|table| table.chunks());
        let last_ns = chunks.map(|chunk| chunk.last).max().unwrap_or(0);
        let trace = self.tables.store.trace();
        let is_whole = !trace.damage().is_cut_off();
        let end = trace.header().filter(|_| is_whole).and_then(|header| {
            let ticks = header.end?.checked_sub(header.start)?;
            ticks.checked_mul(100).filter(|end| *end > 0)
        });
        let end = end.unwrap_or(last_ns).max(last_ns);
        let start = self.range.start.clamp(0, end.max(0));
        start..self.range.end.clamp(start, end.max(start))
    }

    /// Says on stderr if switches contradict each other: then some are missing, and all the time
    /// until the next one is that of the thread that it says left its CPU.
    pub(crate) fn say_if_switches_are_missing(&self) -> Result<(), Failure> {
        let runs = self.tables.table(Table::CpuRuns)?;
        let (mut count, mut ns) = (0_u64, 0_i64);
        for chunk in runs.chunks_within(self.range.clone()) {
            watch::check()?;
            // Of most traces no switch is doubtful, and then nothing more is read.
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
        if count > 0 {
            cli::say(&format!(
                "{count} context switches say that another thread left the CPU than had got it: \
                 switches are missing, and {:.3} s of CPU time, and waits in it, may be others'",
                ns as f64 / 1e9
            ));
        }
        Ok(())
    }

    /// How many processors the trace's header tells of.
    fn processors(&self) -> u16 {
        /// Windows supports no more.
        const MOST: u32 = 2048;
        let header = self.tables.store.trace().header();
        header.map_or(0, |header| header.processors.min(MOST) as u16)
    }
}

/// A share of a whole in percent; 0 of nothing.
fn percent(part: i64, whole: i64) -> f64 {
    match whole {
        ..=0 => 0.0,
        whole => part as f64 * 100.0 / whole as f64,
    }
}
