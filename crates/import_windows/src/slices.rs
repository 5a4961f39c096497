//! Reads a trace in slices of time. So the memory use does not depend on the length of the trace.

use etl::{BufferReader, BufferRef, CpuStream, Segment, Trace};
use events::Decoder;
use rayon::prelude::*;
use tables::import::{
    Progress, RawRows, Reader, ReaderSet, RowSource, SLACK_NS, UnreadableEvents, ends_of_slices,
};
use tables::{Cancelled, Table};

use crate::first_pass::{extend_span, os_version};
use crate::place_of;
use crate::register::{IncomingEvent, Push};

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
    unreadable: UnreadableEvents,
}

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

    /// Returns the unreadable events of each stream.
    pub(crate) fn into_unreadable(self) -> impl Iterator<Item = UnreadableEvents> {
        self.walks.into_iter().map(|walk| walk.unreadable)
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
            let incoming = IncomingEvent {
                decoder,
                ..IncomingEvent::new(&event, os_version)
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
                    self.unreadable.add(table, place_of(&event));
                }
            }
        }
    }
}
