//! Time ranges of a state. An event begins the state, and another event ends it.

/// A time range in which a process was in some state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Start in nanoseconds since the start of the recording.
    pub start_ns: i64,
    /// End in nanoseconds since the start of the recording.
    pub end_ns: i64,
    /// True if the trace has the event that started the state. Otherwise the state began before the trace.
    pub starts_at_event: bool,
    /// True if the trace has the event that ended the state. Otherwise the state ended after the trace.
    pub ends_at_event: bool,
    /// Id of the process.
    pub process_id: u32,
}

impl Interval {
    /// Makes an interval that starts with an event and has no end yet.
    pub fn open(process_id: u32, start_ns: i64) -> Interval {
        Interval {
            start_ns,
            end_ns: start_ns,
            starts_at_event: true,
            ends_at_event: false,
            process_id,
        }
    }

    /// Makes an interval that started before the trace.
    pub fn since_before(process_id: u32, trace_start_ns: i64) -> Interval {
        Interval {
            starts_at_event: false,
            ..Interval::open(process_id, trace_start_ns)
        }
    }

    /// Ends the interval with an event.
    pub fn ended(self, end_ns: i64) -> Interval {
        Interval {
            // The event may have a time before the trace's start. An interval must not end before it starts.
            start_ns: self.start_ns.min(end_ns),
            end_ns,
            ends_at_event: true,
            ..self
        }
    }

    /// Ends the interval at the end of the trace.
    pub fn cut(self, trace_end_ns: i64) -> Interval {
        Interval {
            end_ns: trace_end_ns.max(self.start_ns),
            ..self
        }
    }
}
