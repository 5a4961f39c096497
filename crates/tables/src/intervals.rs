//! Intervals between an event that begins a state and one that ends it.

use etl::Trace;

/// A stretch of time during which something held of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// An event tells of the start; else it was before the trace.
    pub(crate) starts_at_event: bool,
    /// An event tells of the end; else it was after the trace.
    pub(crate) ends_at_event: bool,
    pub(crate) process_id: u32,
}

impl Interval {
    /// An interval that begins with an event and has no end yet.
    pub(crate) fn open(process_id: u32, start_ns: i64) -> Interval {
        Interval {
            start_ns,
            end_ns: start_ns,
            starts_at_event: true,
            ends_at_event: false,
            process_id,
        }
    }

    /// An interval that had begun when the trace did.
    pub(crate) fn since_before(process_id: u32, trace_start_ns: i64) -> Interval {
        Interval {
            starts_at_event: false,
            ..Interval::open(process_id, trace_start_ns)
        }
    }

    /// The same, ended by an event.
    pub(crate) fn ended(self, end_ns: i64) -> Interval {
        Interval {
            // What begins before the trace's start ends no earlier.
            start_ns: self.start_ns.min(end_ns),
            end_ns,
            ends_at_event: true,
            ..self
        }
    }

    /// The same, cut by the end of the trace.
    pub(crate) fn cut(self, trace_end_ns: i64) -> Interval {
        Interval {
            end_ns: trace_end_ns.max(self.start_ns),
            ..self
        }
    }
}

/// The trace's first and last nanosecond, as far as its headers and buffers tell.
pub fn span_of(trace: &Trace) -> (i64, i64) {
    let ends = trace.segments().iter().filter_map(|segment| {
        let end = segment.header.as_ref()?.end?;
        let since = end.saturating_sub(segment.clock.origin_filetime());
        Some(since.saturating_mul(100))
    });
    // Sessions that were never finalised do not say when they ended.
    let buffers = trace.buffers().iter().map(|buffer| {
        let segment = &trace.segments()[usize::from(buffer.segment)];
        segment.clock.to_ns(buffer.first_time)
    });
    (0, ends.chain(buffers).max().unwrap_or(0).max(0))
}
