//! The passes over a trace that fill the requested tables.

use std::sync::atomic::{AtomicBool, AtomicU64};

use etl::Trace;
use events::Decoder;
use tables::import::{Plan, Slice, TakeSlice, UnreadableEvents, counted_progress, read_events};
use tables::{Options, Packets, StoreError, Table, Tables, Unreadable};

use crate::first_pass;
use crate::kind_survey::learn;
use crate::slices::Slices;

/// Reads a trace, with all CPUs in parallel, and fills the requested tables in memory.
///
/// # Errors
/// Returns an error if [`Options::progress`] asks to stop. Unreadable events are not errors. They are in
/// [`Tables::unreadable`].
pub fn build(trace: &Trace, wanted: &[Table], options: Options<'_>) -> Result<Tables, StoreError> {
    let mut tables = Tables::default();
    let take = &mut |slice: Slice| {
        tables.append(slice);
        Ok(())
    };
    let (whole, unreadable) = run(trace, Packets::default(), wanted, options, take)?;
    tables.take_whole(whole, wanted);
    tables.unreadable = unreadable;
    Ok(tables)
}

/// Runs the passes over a trace, with all CPUs in parallel. Passes the rows of tables of events to `take` as soon as they
/// are made. Adds the packets `captured`, sorted by time, to the packets of the trace. If rows are joined with data that
/// is known only at the end of the trace, the trace is read twice. Returns the tables of the whole trace and the unreadable events.
pub(crate) fn run(
    trace: &Trace,
    captured: Packets,
    wanted: &[Table],
    options: Options<'_>,
    take: &mut TakeSlice<'_>,
) -> Result<(Tables, Vec<Unreadable>), StoreError> {
    let plan = Plan::new(wanted);
    let (done, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = counted_progress(plan, options, &done, &is_stopped);
    let mut unreadable = UnreadableEvents::default();
    let pass = first_pass::read(trace, plan.first, &progress, &mut unreadable)?;
    if !plan.rows.is_empty() {
        let decoder = plan.rows.has_table(Table::Events).then(|| {
            let mut decoder = Decoder::new();
            learn(&mut decoder, trace, pass.metadata);
            decoder
        });
        let mut slices = Slices::new(trace, plan.events, decoder);
        read_events(&mut slices, captured, plan, &pass.first, &progress, take)?;
        for unreadable_of_cpu in slices.into_unreadable() {
            unreadable.merge(unreadable_of_cpu);
        }
    }
    Ok((pass.first.tables, unreadable.into_sorted()))
}
