//! Making of rows from a source of slices.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::first_pass::FirstPass;
use crate::plan::Plan;
use crate::recorded_times::RecordedTimes;
use crate::scheduling::Scheduler;
use crate::schema::Rows;
use crate::slice::{JoinStates, Slice};
use crate::slices::{Progress, RowSource};
use crate::trackers::Trackers;
use crate::{Packets, StoreError, Table};

/// Options of building tables.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Callback that is called repeatedly from several threads. Its argument is the stored size in bytes of
    /// all buffers that were read so far. The total size is [`RecordingInfo::size_bytes`]. Building stops when the
    /// callback returns `false`.
    ///
    /// [`RecordingInfo::size_bytes`]: crate::RecordingInfo::size_bytes
    pub progress: &'o (dyn Fn(u64) -> bool + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            progress: &|_| true,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// Error that occurs if the progress callback asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading the trace was cancelled")]
pub struct Cancelled;

/// Function that receives the rows of slices of time.
pub type TakeSlice<'t> = dyn FnMut(Slice) -> Result<(), StoreError> + Send + 't;

/// Returns a callback that gets the number of bytes that were just read. The callback adds up the bytes of all passes
/// and reports the sum to [`Options::progress`]. The callback returns false after [`Options::progress`] asked to stop.
pub fn counted_progress<'p>(
    plan: Plan,
    options: Options<'p>,
    done: &'p AtomicU64,
    is_stopped: &'p AtomicBool,
) -> impl Fn(u64) -> bool + Sync + 'p {
    let passes = plan.passes().max(1);
    move |bytes: u64| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !(options.progress)(done / passes) {
            is_stopped.store(true, Ordering::Relaxed);
        }
        !is_stopped.load(Ordering::Relaxed)
    }
}

/// Makes the rows of tables of events. Two slices of time are processed at the same time: the rows of one
/// slice are made and passed to `take` while the next slice is read.
pub fn read_events(
    slices: &mut impl RowSource,
    mut captured: Packets,
    plan: Plan,
    first: &FirstPass,
    progress: &Progress<'_>,
    take: &mut TakeSlice<'_>,
) -> Result<(), StoreError> {
    let trackers = Trackers::new(first);
    let mut states = JoinStates::default();
    let mut scheduler = None;
    let mut next = slices.next(progress)?;
    while let Some((end_ns, mut raw)) = next.take() {
        if plan.rows.has_table(Table::Packets) {
            let later = captured.split_off(end_ns);
            raw.packets.add(std::mem::replace(&mut captured, later));
        }
        let (read, taken) = rayon::join(
            || slices.next(progress),
            || {
                let mut slice = raw.join(&mut states, &trackers, plan.rows);
                if plan.has_schedule() {
                    let scheduler = scheduler
                        .get_or_insert_with(|| new_scheduler(plan, first.recorded.clone()));
                    let (switches, readied) = (&raw.context_switches, &raw.ready_threads);
                    slice.cpu_runs =
                        scheduler.join(switches, readied, &mut slice.ready_threads, &trackers);
                }
                take(slice)
            },
        );
        taken?;
        next = read?;
    }
    let last_ns = slices.last_ns();
    let mut rest = states.finish(last_ns, &trackers, plan.rows);
    if let Some(scheduler) = scheduler {
        rest.cpu_runs = scheduler.finish(last_ns, &trackers);
    }
    take(rest)
}

fn new_scheduler(plan: Plan, recorded: RecordedTimes) -> Scheduler {
    let has_table = |table| plan.rows.has_table(table);
    Scheduler::new(
        recorded,
        has_table(Table::CpuRuns),
        has_table(Table::ReadyThreads),
    )
}
