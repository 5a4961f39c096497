//! Time ranges of a state. An event begins the state, and another event ends it.

use etl::Trace;

/// A time range in which a process was in some state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// True if the trace has the event that started the state. Otherwise the state began before the trace.
    pub(crate) starts_at_event: bool,
    /// True if the trace has the event that ended the state. Otherwise the state ended after the trace.
    pub(crate) ends_at_event: bool,
    pub(crate) process_id: u32,
}

impl Interval {
    /// Makes an interval that starts with an event and has no end yet.
    pub(crate) fn open(process_id: u32, start_ns: i64) -> Interval {
        Interval {
            start_ns,
            end_ns: start_ns,
            starts_at_event: true,
            ends_at_event: false,
            process_id,
        }
    }

    /// Makes an interval that started before the trace.
    pub(crate) fn since_before(process_id: u32, trace_start_ns: i64) -> Interval {
        Interval {
            starts_at_event: false,
            ..Interval::open(process_id, trace_start_ns)
        }
    }

    /// Ends the interval with an event.
    pub(crate) fn ended(self, end_ns: i64) -> Interval {
        Interval {
            // The event may have a time before the trace's start. An interval must not end before it starts.
            start_ns: self.start_ns.min(end_ns),
            end_ns,
            ends_at_event: true,
            ..self
        }
    }

    /// Ends the interval at the end of the trace.
    pub(crate) fn cut(self, trace_end_ns: i64) -> Interval {
        Interval {
            end_ns: trace_end_ns.max(self.start_ns),
            ..self
        }
    }
}

/// Returns the start and the end of the trace in nanoseconds, according to its headers and buffers.
/// The start is 0.
pub(crate) fn span_of(trace: &Trace) -> (i64, i64) {
    let ends = trace.segments().iter().filter_map(|segment| {
        let end = segment.header.as_ref()?.end?;
        let since = end.saturating_sub(segment.clock.origin_filetime());
        Some(since.saturating_mul(100))
    });
    // The times of buffers also count, because sessions that were never finalised have no end time.
    let buffers = trace.buffers().iter().map(|buffer| {
        let segment = &trace.segments()[usize::from(buffer.segment)];
        segment.clock.to_ns(buffer.first_time)
    });
    (0, ends.chain(buffers).max().unwrap_or(0).max(0))
}
