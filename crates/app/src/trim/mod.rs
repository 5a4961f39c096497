//! Cutting a trace: which of its events a part of it needs, copied as they are.

mod context;
mod redact;
mod stacks;

pub(crate) use redact::Redactor;

use std::io::{Seek, Write};

use etl::write::{Session, WriteError, Writer};
use etl::{Event, Trace, mode};
use events::kernel::ContextSwitch;
use serde::Serialize;

use crate::event_filter::{Filter, Sieve};
use crate::processes::known_id;
use stacks::KeptTimes;

/// Hook of a context switch.
const CSWITCH: u16 = 0x0524;

/// Size of the buffers written: the least that holds any record. Larger ones would cost memory, and
/// room in the file, for each CPU.
const BUFFER_SIZE: u32 = 128 << 10;

/// What became of a trace's events.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// Events read, the headers' own among them.
    pub(crate) read: u64,
    /// Events kept because they were asked for.
    pub(crate) wanted: u64,
    /// Events kept because others cannot be understood without them.
    pub(crate) context: u64,
    /// Events left out because what they say could not be redacted.
    pub(crate) unredactable: u64,
    /// Wanted events that came too late to be put in the order of time: damage of the input.
    pub(crate) out_of_order: u64,
}

/// Why an event is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was asked for.
    Wanted,
    /// Others cannot be understood without it.
    Context,
}

/// Decides, event by event in the order of time, what is kept.
pub(crate) struct Selection<'a> {
    filter: &'a Filter,
    sieve: Sieve<'a>,
    kept: KeptTimes,
    /// The thread that each CPU runs, from its last switch on.
    running: Vec<Option<u32>>,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(filter: &'a Filter, sieve: Sieve<'a>) -> Selection<'a> {
        Selection {
            filter,
            sieve,
            kept: KeptTimes::default(),
            running: Vec::new(),
        }
    }

    /// Why the event is kept, if it is.
    pub(crate) fn reason(&mut self, event: &Event<'_>) -> Option<Reason> {
        let running = self.running(event);
        let reason = self.decide(event, running);
        if event.hook() == Some(CSWITCH) {
            self.note_switch(event);
        }
        reason
    }

    fn decide(&mut self, event: &Event<'_>, running: Option<u32>) -> Option<Reason> {
        // The log has a header of its own.
        if event.hook() == Some(0) {
            return None;
        }
        if let Some(time) = stacks::time_of_event(event) {
            let wanted = self.kept.contains(time)
                || !self.filter.asks_for_kinds() && self.sieve.passes(event, None);
            return wanted.then_some(Reason::Wanted);
        }
        if context::is_interrupt(event) && self.filter.asks_for_ids() {
            // Interrupts are nobody's and keep everybody waiting.
            return self.sieve.is_of_kind(event).then_some(Reason::Context);
        }
        if self.sieve.passes(event, running) {
            self.kept.add(event.raw_time());
            return Some(Reason::Wanted);
        }
        context::is_needed(event).then_some(Reason::Context)
    }

    /// The thread that the CPU of an event ran, if the event itself names none.
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

/// What the header of a part of a trace says: the original's clock and start, so that times stay
/// what they were, and the end of the part.
///
/// # Errors
/// If the trace's events cannot be on one clock, or nothing says what its clock is.
pub(crate) fn session(trace: &Trace, filter: &Filter) -> Result<Session, String> {
    let headers = || trace.segments().iter().map(|s| s.header.as_ref());
    let Some(headers) = headers().collect::<Option<Vec<_>>>() else {
        return Err(
            "the trace has no readable header, so nothing says what its times mean".to_owned(),
        );
    };
    let clock = trace.clock();
    if !trace.is_one_system() || trace.segments().iter().any(|s| s.clock != *clock) {
        return Err(
            "these files were recorded by different systems, after another boot or with \
                    another clock, and cannot become one; trim them one by one"
                .to_owned(),
        );
    }
    let Some(first) = headers.iter().min_by_key(|header| header.start) else {
        return Err("the trace is empty".to_owned());
    };
    let highest_cpu = trace.buffers().iter().map(|b| b.cpu).max().unwrap_or(0);
    let session = Session::from(*first);
    let ends: Option<Vec<i64>> = headers.iter().map(|header| header.end).collect();
    let end = ends.and_then(|ends| ends.into_iter().max());
    let (_, to) = filter.range(clock);
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

/// Copies an event that is kept, redacted if it must be, and counts it.
///
/// # Errors
/// If the output fails.
pub(crate) fn keep<W: Write + Seek>(
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
