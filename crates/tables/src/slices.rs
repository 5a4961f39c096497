//! The rows of a trace, slice of time by slice of time: memory stays bounded however long it is.

use std::sync::Arc;

use etl::{BufferReader, CpuStream, Trace};
use events::Decoder;
use rayon::prelude::*;

use crate::build::Cancelled;
use crate::plan::Wanted;
use crate::stream::Stream;
use crate::tables::Slice;

/// Bytes of buffers, decompressed, that a slice is made of.
const SLICE_BYTES: u64 = 64 << 20;

/// A buffer's events can be a little older than its first one: threads take the time of an event
/// before they reserve its place. So this much is read beyond a slice's end.
const SLACK_NS: i64 = 10_000_000;

/// Walks a trace in slices of time, its CPUs in parallel.
pub(crate) struct Slices<'t> {
    trace: &'t Trace,
    wanted: Wanted,
    walks: Vec<Walk<'t>>,
    /// The moments at which slices end, the latest first.
    ends: Vec<i64>,
}

/// One CPU stream and what was read of it and not yet given away.
struct Walk<'t> {
    stream: CpuStream<'t>,
    reader: BufferReader<'t>,
    /// First nanosecond of each buffer.
    first_ns: Vec<i64>,
    next: usize,
    rows: Stream,
}

impl<'t> Slices<'t> {
    pub(crate) fn new(
        trace: &'t Trace,
        wanted: Wanted,
        decoder: Option<Arc<Decoder>>,
    ) -> Slices<'t> {
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
                    rows: Stream::decoding(decoder.clone()),
                }
            })
            .collect();
        let mut ends = ends(&walks);
        ends.reverse();
        Slices {
            trace,
            wanted,
            walks,
            ends,
        }
    }

    /// Reads the next slice; `None` after the last. Rows of a slice are sorted, and none is older
    /// than those of the slice before, unless the trace's own order is broken beyond
    /// [`SLACK_NS`].
    ///
    /// # Errors
    /// When `progress` asks to stop.
    pub(crate) fn next(
        &mut self,
        progress: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Option<Slice>, Cancelled> {
        let Some(end_ns) = self.ends.pop() else {
            return Ok(None);
        };
        let (segments, wanted) = (self.trace.segments(), self.wanted);
        self.walks.par_iter_mut().try_for_each(|walk| {
            while let Some(first) = walk.first_ns.get(walk.next)
                && first.saturating_sub(SLACK_NS) < end_ns
            {
                let buffer = &walk.stream.buffers()[walk.next];
                walk.rows
                    .read_buffer(&mut walk.reader, buffer, segments, wanted);
                walk.next += 1;
                if !progress(buffer.stored_size.into()) {
                    return Err(Cancelled);
                }
            }
            walk.rows.damage.merge(walk.reader.take_damage());
            Ok(())
        })?;
        let streams = self.walks.iter_mut().map(|walk| &mut walk.rows).collect();
        Ok(Some(Slice::take(streams, end_ns)))
    }

    /// The last event met so far; 0 if there is none.
    pub(crate) fn last_ns(&self) -> i64 {
        let spans = self.walks.iter().filter_map(|walk| walk.rows.span_ns);
        spans.map(|(_, last)| last).max().unwrap_or(0)
    }

    /// What the streams hold that is no row of a slice.
    pub(crate) fn into_streams(self) -> Vec<Stream> {
        self.walks.into_iter().map(|walk| walk.rows).collect()
    }
}

/// Where to end slices so that each holds about [`SLICE_BYTES`].
fn ends(walks: &[Walk<'_>]) -> Vec<i64> {
    let mut buffers: Vec<(i64, u32)> = walks
        .iter()
        .flat_map(|walk| walk.first_ns.iter().zip(walk.stream.buffers()))
        .map(|(first, buffer)| (*first, buffer.valid_size))
        .collect();
    buffers.sort_unstable();
    let mut ends = Vec::new();
    let mut bytes = 0;
    for (first, size) in buffers {
        if bytes >= SLICE_BYTES && ends.last().is_none_or(|end| *end < first) {
            ends.push(first);
            bytes = 0;
        }
        bytes += u64::from(size);
    }
    // What remains, whatever time it claims.
    ends.push(i64::MAX);
    ends
}
