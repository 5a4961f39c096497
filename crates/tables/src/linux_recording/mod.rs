//! Tables of recordings of Linux. Rows of events are joined with processes, threads and other data by the same code
//! as the rows of traces of Windows.

mod decoder;
mod freezes;
mod images;
mod lives;
mod proc_facts;
mod routines;
mod rows;
mod sampling;
pub mod states;
mod whole;

use std::sync::atomic::{AtomicBool, AtomicU64};

use linux::{Chunk, Event, EventKind, Meaning, Recording};
use rayon::prelude::*;

use crate::build::{
    Cancelled, Give, StreamError, Summary, counted_progress, give_whole, read_events,
};
use crate::first_pass::FirstPass;
use crate::plan::Plan;
use crate::slice::Slice;
use crate::slices::Progress;
use crate::stack_index::{StackEvents, StackIndex};
use crate::{Options, Packets, Table};
pub use decoder::LinuxDecoder;
use freezes::Cgroups;
use images::Mappings;
use lives::Lives;
pub(crate) use proc_facts::ProcFacts;
pub use proc_facts::path_of;
pub(crate) use proc_facts::read_next_to;
use rows::RowsOfChunks;
use whole::Counts;

/// Recording of Linux, and the facts from the file `FILE.proc` next to it.
#[derive(Debug)]
pub(crate) struct LinuxRecording {
    pub(crate) recording: Recording,
    pub(crate) facts: ProcFacts,
}

/// Start of the year 1970 as a FILETIME.
const UNIX_FILETIME: i64 = 116_444_736_000_000_000;

/// Maximum number of CPUs that Linux supports. A CPU with this number or a higher number is treated as unknown.
const MAX_CPUS: u32 = 8192;

/// Time of the first event on the clock of a recording, in nanoseconds. It is the start of the trace.
pub(crate) fn origin_ns(recording: &Recording) -> u64 {
    let first = recording.chunks().iter().filter_map(|chunk| chunk.first_ns);
    first.min().unwrap_or(0)
}

/// Returns the time from the first to the last event of a recording, in nanoseconds.
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

/// Makes tables of a recording, in the same way as [`stream`](crate::stream) makes tables of a trace. `file` is the
/// name of the recording's file.
pub(crate) fn stream<E: Send>(
    file: &str,
    LinuxRecording { recording, facts }: &LinuxRecording,
    wanted: &[Table],
    options: Options<'_>,
    give: &mut Give<'_, E>,
) -> Result<Summary, StreamError<E>> {
    let plan = Plan::new(wanted);
    let (done, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = counted_progress(plan, options, &done, &is_stopped);
    let (first, summary, has_waking) = read_whole(file, recording, facts, plan, &progress)?;
    if !plan.rows.is_empty() {
        let mut rows = RowsOfChunks::new(recording, facts, plan.events, has_waking);
        let take = &mut |slice: Slice| slice.give(give);
        let captured = Packets::default();
        read_events(&mut rows, captured, plan, &first, &progress, take)?;
    }
    give_whole(first.tables, wanted, give)?;
    Ok(summary)
}

/// Makes the tables of the whole recording. Also returns true if its wakes are `sched_waking` events.
fn read_whole(
    file: &str,
    recording: &Recording,
    facts: &ProcFacts,
    plan: Plan,
    progress: &Progress<'_>,
) -> Result<(FirstPass, Summary, bool), Cancelled> {
    let origin_ns = origin_ns(recording);
    let has_stacks = plan.first.has_table(Table::Stacks);
    let new = || Part {
        lives: Lives::new(recording),
        ..Part::default()
    };
    // A recording can have millions of chunks, so a part has the facts of many neighbouring chunks.
    let parts = recording
        .chunks()
        .par_iter()
        .try_fold(new, |mut part, chunk| {
            // If a chunk cannot be read, its events are missing. `Counts::end` adds this fault to the damage.
            let read = recording.read(chunk, &mut |event| {
                part.add(
                    time_since(origin_ns, event),
                    event,
                    cpu_of(chunk),
                    has_stacks,
                );
            });
            part.counts.end(chunk, read);
            match progress(chunk.bytes.into()) {
                true => Ok(part),
                false => Err(Cancelled),
            }
        });
    let parts: Vec<Part> = parts.collect::<Result<_, Cancelled>>()?;
    let mut lives = Lives::default();
    let mut mappings = Mappings::default();
    let mut cgroups = Cgroups::default();
    let mut counts = Counts::default();
    let mut stacks = Vec::new();
    for part in parts {
        lives.merge(part.lives);
        mappings.merge(part.mappings);
        cgroups.merge(part.cgroups);
        counts.merge(part.counts);
        stacks.push(part.stacks);
    }
    let mut first = FirstPass {
        length_ns: Some(length_ns(recording)),
        ..FirstPass::default()
    };
    let tables = &mut first.tables;
    (tables.processes, tables.threads) = lives.into_tables(facts);
    tables.images = mappings.into_table(recording.build_ids());
    (first.stacks, tables.stacks) = StackIndex::build(stacks);
    if plan.first.has_table(Table::ProcessFreezes) {
        tables.process_freezes = cgroups.into_table(&tables.processes, facts, length_ns(recording));
    }
    counts.add_damage(recording);
    first.recorded.may_skip_switches = counts.summary().damage.events_lost == 0;
    whole::fill(&mut first.tables, file, recording, &counts, plan);
    let has_waking = counts.has_waking(recording);
    Ok((first, counts.summary(), has_waking))
}

/// Facts of a chunk for the tables of the whole recording.
#[derive(Default)]
struct Part {
    lives: Lives,
    mappings: Mappings,
    cgroups: Cgroups,
    counts: Counts,
    stacks: StackEvents,
}

impl Part {
    fn add(&mut self, time_ns: i64, event: &Event<'_>, cpu: Option<u16>, has_stacks: bool) {
        self.lives.add(time_ns, event);
        self.mappings.add(time_ns, event);
        self.cgroups.add(time_ns, event);
        self.counts.add(time_ns, event);
        let Some((cpu, chain)) = cpu.zip(event.chain()).filter(|_| has_stacks) else {
            return;
        };
        let place = (time_ns, cpu);
        match &event.kind {
            EventKind::Tracepoint { tracepoint, .. } => match tracepoint.meaning {
                Meaning::Switch(switch) => {
                    let threads = (switch.previous.thread_id, switch.next.thread_id);
                    self.stacks.push_switch(place, threads, chain.addresses());
                }
                _ => (self.stacks).push_chain(place, tracepoint.thread_id, chain.addresses()),
            },
            _ => {
                if let Some(thread_id) = event.thread_id {
                    self.stacks.push_chain(place, thread_id, chain.addresses());
                }
            }
        }
    }
}

/// Returns the time of an event in nanoseconds since the start of the recording. Returns 0 if the event has no time,
/// because perf itself made it.
fn time_since(origin_ns: u64, event: &Event<'_>) -> i64 {
    let since = event
        .time_ns
        .map_or(0, |time_ns| time_ns.saturating_sub(origin_ns));
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Returns the number of a chunk's CPU. Returns `None` if the number is unknown or too high.
fn cpu_of(chunk: &Chunk) -> Option<u16> {
    chunk.cpu.and_then(known_cpu)
}

/// Returns the number of a CPU. Returns `None` if it is too high.
fn known_cpu(cpu: u32) -> Option<u16> {
    u16::try_from(cpu).ok().filter(|_| cpu < MAX_CPUS)
}
