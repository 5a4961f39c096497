//! Tables of recordings of Linux. The rows of events go through the same joins as those of Windows.

mod lives;
mod rows;
mod whole;

use std::sync::atomic::{AtomicBool, AtomicU64};

use linux::{Chunk, Event, Recording};
use rayon::prelude::*;

use crate::build::{
    Cancelled, Give, StreamError, Summary, counted_progress, give_whole, read_events,
};
use crate::first_pass::FirstPass;
use crate::plan::Plan;
use crate::slice::Slice;
use crate::slices::Progress;
use crate::{Options, Packets, Table};
use lives::Lives;
use rows::RowsOfChunks;
use whole::Counts;

/// Start of the year 1970 as a FILETIME.
const UNIX_FILETIME: i64 = 116_444_736_000_000_000;

/// Greatest number of a CPU that is read. Linux supports at most 8,192 CPUs.
const MAX_CPUS: u32 = 8192;

/// Time of the first event on the clock of a recording, in nanoseconds. It is the start of the trace.
pub(crate) fn origin_ns(recording: &Recording) -> u64 {
    let first = recording.chunks().iter().filter_map(|chunk| chunk.first_ns);
    first.min().unwrap_or(0)
}

/// Returns the time from the first to the last event of a recording.
pub(crate) fn length_ns(recording: &Recording) -> i64 {
    let last = recording.chunks().iter().filter_map(|chunk| chunk.last_ns);
    let length = last.max().map_or(0, |last| last - origin_ns(recording));
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Returns the time of day of the first event as a FILETIME; `None` if the recording does not have it.
pub(crate) fn start_filetime(recording: &Recording) -> Option<i64> {
    let clock = recording.system().wall_clock?;
    let since = origin_ns(recording)
        .wrapping_sub(clock.clock_ns)
        .cast_signed();
    let unix_ns = i64::try_from(clock.unix_ns).ok()?.checked_add(since)?;
    Some(unix_ns / 100 + UNIX_FILETIME)
}

/// Makes tables of a recording, in the same way as [`stream`](crate::stream) does of a trace. `file` is its name.
pub(crate) fn stream<E: Send>(
    file: &str,
    recording: &Recording,
    wanted: &[Table],
    options: Options<'_>,
    give: &mut Give<'_, E>,
) -> Result<Summary, StreamError<E>> {
    let plan = Plan::new(wanted);
    let (done, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = counted_progress(plan, options, &done, &is_stopped);
    let (first, summary) = read_whole(file, recording, plan, &progress)?;
    if !plan.rows.is_empty() {
        let mut rows = RowsOfChunks::new(recording, plan.events);
        let take = &mut |slice: Slice| slice.give(give);
        let captured = Packets::default();
        read_events(&mut rows, captured, plan, &first, &progress, take)?;
    }
    give_whole(first.tables, wanted, give)?;
    Ok(summary)
}

/// Makes the tables of the whole recording.
fn read_whole(
    file: &str,
    recording: &Recording,
    plan: Plan,
    progress: &Progress<'_>,
) -> Result<(FirstPass, Summary), Cancelled> {
    let origin_ns = origin_ns(recording);
    let read = recording.chunks().par_iter().map(|chunk| {
        let mut lives = Lives::default();
        let mut counts = Counts::default();
        // A recording that can no longer be read has fewer events. The faults tell it.
        let read = recording.read(chunk, &mut |event| {
            let time_ns = time_since(origin_ns, event);
            lives.add(time_ns, event);
            counts.add(time_ns, event);
        });
        counts.end(chunk, read);
        match progress(chunk.bytes.into()) {
            true => Ok((lives, counts)),
            false => Err(Cancelled),
        }
    });
    let parts: Vec<_> = read.collect::<Result<_, Cancelled>>()?;
    let mut lives = Lives::default();
    let mut counts = Counts::default();
    for (of_chunk, counts_of_chunk) in parts {
        lives.merge(of_chunk);
        counts.merge(counts_of_chunk);
    }
    let mut first = FirstPass {
        length_ns: Some(length_ns(recording)),
        ..FirstPass::default()
    };
    (first.tables.processes, first.tables.threads) = lives.into_tables();
    counts.add_damage(recording);
    whole::fill(&mut first.tables, file, recording, &counts, plan);
    Ok((first, counts.summary()))
}

/// Returns the time of an event since the start of the recording. Facts that perf collected itself are at the start.
fn time_since(origin_ns: u64, event: &Event<'_>) -> i64 {
    let since = event
        .time_ns
        .map_or(0, |time_ns| time_ns.saturating_sub(origin_ns));
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Returns the number of a chunk's CPU; `None` if it is unknown or impossible.
fn cpu_of(chunk: &Chunk) -> Option<u16> {
    let cpu = chunk.cpu.filter(|cpu| *cpu < MAX_CPUS)?;
    u16::try_from(cpu).ok()
}
