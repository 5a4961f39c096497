//! Trimming of a trace: selects the events that a part of the trace needs, and copies them
//! unchanged or redacted.

mod context;
mod redact;
mod stacks;

pub use redact::Redactor;

use std::io::{Seek, Write};

use etl::write::{Session, WriteError, Writer};
use etl::{Damage, Event, Trace, mode};
use events::ids::hook;
use events::kernel::ContextSwitch;
use raw_events::{Filter, Sieve, known_id};
use serde::Serialize;
use tables::{Cancelled, Options};

use stacks::KeptTimes;

/// Size of the written buffers in bytes: the smallest buffers that can hold any record. Larger
/// buffers would need more memory and more space in the file for each CPU.
const BUFFER_SIZE: u32 = 128 << 10;

/// Numbers of events that were read, kept or left out.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Number of events that were read. Events with the log's headers are included.
    pub read: u64,
    /// Number of kept events that the filter selects.
    pub wanted: u64,
    /// Number of events that are kept although the filter does not select them. There are two reasons to keep them:
    /// other events cannot be interpreted without them, or they are DPCs and interrupts, which can delay every thread.
    pub context: u64,
    /// Number of events that are left out because their contents could not be redacted.
    pub unredactable: u64,
    /// Number of selected events that are left out because they came too late to be written in time order. If
    /// there are such events, the input is damaged.
    pub out_of_order: u64,
}

/// Reason why a trace cannot be trimmed or redacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrimError {
    /// The trace has no readable header that describes its clock.
    #[error("the trace has no readable header, so the unit of its times is unknown")]
    NoHeader,
    /// The files of the trace use several clocks.
    #[error(
        "these files were recorded by different systems, after another boot or with another clock, \
         so they cannot become one trace; trim them one by one"
    )]
    SeveralClocks,
    /// The trace contains no session.
    #[error("the trace is empty")]
    Empty,
    /// The secret for pseudonyms is empty.
    #[error("--redact-key: the secret is empty; give a text that others cannot guess")]
    EmptySecret,
    /// The operating system provides no random numbers.
    #[error("cannot get random numbers for a key: {0}")]
    NoRandom(getrandom::Error),
}

/// Reason why an event is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The filter selects the event.
    Wanted,
    /// The filter does not select the event. The event is kept for one of two reasons: other events cannot be decoded
    /// without it, or it is a DPC or an interrupt.
    Context,
}

/// Selection of the events that a part of a trace keeps. The selection must see all events in time order.
pub struct Selection<'a> {
    filter: &'a Filter,
    sieve: Sieve<'a>,
    kept: KeptTimes,
    /// Thread that runs on each CPU since the CPU's last context switch.
    running: Vec<Option<u32>>,
}

impl<'a> Selection<'a> {
    /// Creates a selection. `sieve` applies `filter` to events.
    pub fn new(filter: &'a Filter, sieve: Sieve<'a>) -> Selection<'a> {
        Selection {
            filter,
            sieve,
            kept: KeptTimes::default(),
            running: Vec::new(),
        }
    }

    /// Returns the reason to keep the event, or `None` if it is left out.
    fn reason(&mut self, event: &Event<'_>) -> Option<Reason> {
        let running = self.running(event);
        let reason = self.decide(event, running);
        if event.hook() == Some(hook::CONTEXT_SWITCH) {
            self.note_switch(event);
        }
        reason
    }

    fn decide(&mut self, event: &Event<'_>, running: Option<u32>) -> Option<Reason> {
        // The header of the input is not copied, because the writer writes a new header.
        if event.hook() == Some(hook::HEADER) {
            return None;
        }
        if let Some(time) = stacks::time_of_event(event) {
            let wanted = self.kept.contains(time)
                || !self.filter.asks_for_kinds() && self.sieve.passes(event, None);
            return wanted.then_some(Reason::Wanted);
        }
        if context::is_interrupt(event) && self.filter.asks_for_ids() {
            // Interrupts belong to no thread, but they can delay every thread.
            return self.sieve.is_of_kind(event).then_some(Reason::Context);
        }
        if self.sieve.passes(event, running) {
            self.kept.add(event.raw_time());
            return Some(Reason::Wanted);
        }
        context::is_needed(event).then_some(Reason::Context)
    }

    /// Returns the id of the thread that ran on the CPU of an event. Returns `None` if the event's header names a
    /// thread, or if the running thread is unknown.
    fn running(&self, event: &Event<'_>) -> Option<u32> {
        match known_id(event.thread_id()) {
            Some(_) => None,
            None => *self.running.get(usize::from(event.cpu()))?,
        }
    }

    fn note_switch(&mut self, event: &Event<'_>) {
        let version = event.version().unwrap_or(0);
        let switch = ContextSwitch::read(event.payload(), version, event.pointer_size());
        let cpu = usize::from(event.cpu());
        if self.running.len() <= cpu {
            self.running.resize(cpu + 1, None);
        }
        self.running[cpu] = switch.map(|switch| switch.new_thread_id);
    }
}

/// Returns the log-file header for a part of a trace. The header contains the clock and the start of the original
/// trace, so times stay the same. It also contains the end of the part.
///
/// # Errors
/// Returns an error if the trace is empty, if a header is missing, or if the trace's files use several clocks.
pub fn session(trace: &Trace, filter: &Filter) -> Result<Session, TrimError> {
    let headers = || trace.segments().iter().map(|s| s.header.as_ref());
    let Some(headers) = headers().collect::<Option<Vec<_>>>() else {
        return Err(TrimError::NoHeader);
    };
    let clock = trace.clock();
    if !trace.is_one_system() || trace.segments().iter().any(|s| s.clock != *clock) {
        return Err(TrimError::SeveralClocks);
    }
    let Some(first) = headers.iter().min_by_key(|header| header.start) else {
        return Err(TrimError::Empty);
    };
    let highest_cpu = trace.buffers().iter().map(|b| b.cpu).max().unwrap_or(0);
    let session = Session::from(*first);
    let ends: Option<Vec<i64>> = headers.iter().map(|header| header.end).collect();
    let end = ends.and_then(|ends| ends.into_iter().max());
    let (_, to) = filter.range();
    let cut = match to {
        i64::MAX => None,
        _ => Some(clock.to_filetime(clock.from_ns(to)).max(first.start)),
    };
    let lost = trace.damage();
    let compressed = headers
        .iter()
        .any(|header| header.log_file_mode & mode::COMPRESSED != 0);
    Ok(Session {
        buffer_size: BUFFER_SIZE,
        processors: session.processors.max(highest_cpu + 1),
        mode: mode::SEQUENTIAL | mode::RELOG,
        end: end.map(|end| cut.map_or(end, |cut| cut.min(end))).or(cut),
        events_lost: u32::try_from(lost.events_lost).unwrap_or(u32::MAX),
        buffers_lost: u32::try_from(lost.buffers_lost).unwrap_or(u32::MAX),
        compressed,
        ..session
    })
}

/// Reason why the copying of a trace failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The progress callback cancelled the copying.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Copies the selected events in time order. Returns their counts, and the damage that was found in the
/// input.
///
/// # Errors
/// Returns an error if the output cannot be written, or the progress callback cancels the copying.
pub fn copy<W: Write + Seek>(
    trace: &Trace,
    mut selection: Selection<'_>,
    mut redactor: Option<&mut Redactor<'_>>,
    writer: &mut Writer<W>,
    options: Options<'_>,
) -> Result<(Counts, Damage), CopyError> {
    /// Number of events between two calls of the progress callback.
    const STEP: u64 = 1024;
    let mut events = trace.events();
    let mut counts = Counts::default();
    loop {
        if counts.read.is_multiple_of(STEP) && !(options.progress)(events.bytes_read()) {
            return Err(Cancelled.into());
        }
        let Some(event) = events.next() else { break };
        counts.read += 1;
        if let Some(reason) = selection.reason(&event) {
            let redactor = redactor.as_deref_mut();
            keep(writer, redactor, &event, reason, &mut counts)?;
        }
    }
    Ok((counts, events.damage().clone()))
}

/// Writes a selected event, redacted if `redactor` is given, and counts it.
///
/// # Errors
/// Returns an error if the output fails.
fn keep<W: Write + Seek>(
    writer: &mut Writer<W>,
    redactor: Option<&mut Redactor<'_>>,
    event: &Event<'_>,
    reason: Reason,
    counts: &mut Counts,
) -> Result<(), WriteError> {
    let written = match redactor {
        None => writer.copy(event),
        Some(redactor) => match redactor.redact(event) {
            Some(record) => writer.copy_bytes(event, record),
            None => {
                counts.unredactable += 1;
                return Ok(());
            }
        },
    };
    match written {
        Ok(()) => match reason {
            Reason::Wanted => counts.wanted += 1,
            Reason::Context => counts.context += 1,
        },
        Err(WriteError::OutOfOrder { .. }) => counts.out_of_order += 1,
        Err(error) => return Err(error),
    }
    Ok(())
}
