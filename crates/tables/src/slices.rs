//! Reads a trace in slices of time. So the memory use does not depend on the length of the trace.

use etl::{BufferReader, BufferRef, CpuStream, Damage, Segment, Trace};
use events::Decoder;
use rayon::prelude::*;

use crate::Table;
use crate::build::Cancelled;
use crate::first_pass::{extend_span, os_version};
use crate::register::{Incoming, Reader, ReaderSet};
use crate::slice::RawRows;
use crate::unreadable::UnreadableEvents;

/// Approximate size of the decompressed buffers of a slice, in bytes.
pub(crate) const SLICE_BYTES: u64 = 32 << 20;

/// Time in nanoseconds that is read beyond the end of a slice. This is necessary, because an event can be a
/// little older than the first event of its buffer. The reason is that a thread first reads the clock for its
/// event and then reserves space in the buffer.
pub(crate) const SLACK_NS: i64 = 10_000_000;

/// Reader of a trace in slices of time, with all CPUs in parallel.
pub(crate) struct Slices<'t> {
    trace: &'t Trace,
    wanted: ReaderSet,
    decoder: Option<Decoder>,
    walks: Vec<Walk<'t>>,
    /// Ends of the remaining slices. The latest end comes first.
    ends: Vec<i64>,
}

/// A CPU stream, with events that were already read but do not belong to a finished slice yet.
struct Walk<'t> {
    stream: CpuStream<'t>,
    reader: BufferReader<'t>,
    /// Time of the first event of each buffer, in nanoseconds.
    first_ns: Vec<i64>,
    /// Index of the buffer that is read next.
    next: usize,
    raw: RawRows,
    /// Times of the first and the last kernel event.
    span_ns: Option<(i64, i64)>,
    damage: Damage,
    unreadable: UnreadableEvents,
}

/// Source of the data of tables of events, in slices of time.
pub(crate) trait RowSource: Send {
    /// Reads the next slice. Returns the end of the slice and its data, sorted. Returns `None` after the last slice.
    ///
    /// # Errors
    /// Returns an error if `progress` asks to stop.
    fn next(&mut self, progress: &Progress<'_>) -> Result<Option<(i64, RawRows)>, Cancelled>;

    /// Returns the time of the last event that was read so far. Returns 0 if no event was read.
    fn last_ns(&self) -> i64;
}

/// Callback that gets the number of bytes that were just read. Reading stops if it returns false.
pub(crate) type Progress<'p> = dyn Fn(u64) -> bool + Sync + 'p;

impl<'t> Slices<'t> {
    pub(crate) fn new(trace: &'t Trace, wanted: ReaderSet, decoder: Option<Decoder>) -> Slices<'t> {
        let walks: Vec<Walk<'t>> = trace
            .streams()
            .into_iter()
            .map(|stream| {
                let clock = |segment: u16| &trace.segments()[usize::from(segment)].clock;
                let buffers = stream.buffers().iter();
                Walk {
                    first_ns: buffers
                        .map(|buffer| clock(buffer.segment).to_ns(buffer.first_time))
                        .collect(),
                    reader: stream.reader(),
                    stream,
                    next: 0,
                    raw: RawRows::default(),
                    span_ns: None,
                    damage: Damage::default(),
                    unreadable: UnreadableEvents::default(),
                }
            })
            .collect();
        let buffers = walks.iter().flat_map(|walk| {
            let buffers = walk.first_ns.iter().zip(walk.stream.buffers());
            buffers.map(|(first, buffer)| (*first, buffer.valid_size))
        });
        let mut ends = ends_of_slices(buffers.collect());
        ends.reverse();
        Slices {
            trace,
            wanted,
            decoder,
            walks,
            ends,
        }
    }

    /// Returns the faults of each stream.
    pub(crate) fn into_faults(self) -> impl Iterator<Item = (Damage, UnreadableEvents)> {
        let walks = self.walks.into_iter();
        walks.map(|walk| (walk.damage, walk.unreadable))
    }
}

impl RowSource for Slices<'_> {
    /// Reads the next slice. Usually its data is not older than the data of the previous slice. The exception is a
    /// trace in which events are out of order by more than [`SLACK_NS`].
    fn next(&mut self, progress: &Progress<'_>) -> Result<Option<(i64, RawRows)>, Cancelled> {
        let Some(end_ns) = self.ends.pop() else {
            return Ok(None);
        };
        let (segments, wanted) = (self.trace.segments(), self.wanted);
        let decoder = self.decoder.as_ref();
        self.walks.par_iter_mut().try_for_each(|walk| {
            while let Some(first) = walk.first_ns.get(walk.next)
                && first.saturating_sub(SLACK_NS) < end_ns
            {
                let buffer = walk.stream.buffers()[walk.next];
                walk.read_buffer(&buffer, segments, wanted, decoder);
                walk.next += 1;
                if !progress(buffer.stored_size.into()) {
                    return Err(Cancelled);
                }
            }
            walk.damage.merge(walk.reader.take_damage());
            Ok(())
        })?;
        let streams = self.walks.iter_mut().map(|walk| &mut walk.raw).collect();
        Ok(Some((end_ns, RawRows::take(streams, end_ns))))
    }

    fn last_ns(&self) -> i64 {
        let spans = self.walks.iter().filter_map(|walk| walk.span_ns);
        spans.map(|(_, last)| last).max().unwrap_or(0)
    }
}

impl Walk<'_> {
    fn read_buffer(
        &mut self,
        buffer: &BufferRef,
        segments: &[Segment],
        wanted: ReaderSet,
        decoder: Option<&Decoder>,
    ) {
        let os_version = os_version(segments, buffer);
        for event in self.reader.read(buffer) {
            let incoming = Incoming {
                decoder,
                ..Incoming::new(&event, os_version)
            };
            extend_span(&mut self.span_ns, &incoming);
            let mut readers = incoming.readers.intersection(wanted);
            if decoder.is_some() && incoming.is_generic() {
                readers.add(Reader::Table(Table::Events));
            }
            for reader in readers.iter() {
                if let Reader::Table(table) = reader
                    && self.raw.push(table, &incoming).is_none()
                {
                    self.unreadable.add(table, event.place());
                }
            }
        }
    }
}

/// Divides a trace into slices of about [`SLICE_BYTES`] each, and returns the ends of the slices. `parts` has the time
/// of the first event and the size in bytes of each part of the trace.
pub(crate) fn ends_of_slices(mut parts: Vec<(i64, u32)>) -> Vec<i64> {
    parts.sort_unstable();
    let mut ends = Vec::new();
    let mut bytes = 0;
    for (first, size) in parts {
        if bytes >= SLICE_BYTES && ends.last().is_none_or(|end| *end < first) {
            ends.push(first);
            bytes = 0;
        }
        bytes += u64::from(size);
    }
    // The last slice contains all remaining events. So events with wrong times are not left out.
    ends.push(i64::MAX);
    ends
}
