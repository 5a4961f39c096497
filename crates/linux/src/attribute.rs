//! Descriptions of recorded events (`perf_event_attr`).

use crate::bytes::{Bytes, Order};
use crate::event_name;
use crate::sample::SampleLayout;

/// Size in bytes of the first version of `perf_event_attr`, which is the smallest.
const LEAST_SIZE: usize = 64;

/// Bit numbers in the flags of `perf_event_attr`.
mod flag {
    pub(super) const FREQUENCY: u32 = 10;
    pub(super) const SAMPLE_ID_ALL: u32 = 18;
    pub(super) const COMM_EXEC: u32 = 24;
    pub(super) const USE_CLOCKID: u32 = 25;
}

/// Description of one kind of recorded events (`perf_event_attr`).
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Type of the events: 0 hardware, 1 software, 2 tracepoint, 3 cache, 4 raw, 5 breakpoint. A larger number is a
    /// device that counts events.
    pub kind: u32,
    /// Number of the event within its type. For a tracepoint, this is [`Format::id`](crate::Format::id).
    pub config: u64,
    /// Number of events between two samples, or number of samples per second.
    pub period_or_frequency: u64,
    /// True if `period_or_frequency` is a number of samples per second.
    pub is_frequency: bool,
    /// Name of the event; `None` if the recording does not contain it.
    pub name: Option<String>,
    /// Clock of the times in the event's records.
    pub clock: Clock,
    /// True if the names of threads have a mark when their process started a new program (`comm_exec`).
    pub(crate) marks_exec: bool,
    pub(crate) layout: SampleLayout,
}

/// Clock that gives the times of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Clock of the scheduler (`sched_clock`), the default of perf. Its difference from the clocks that programs can
    /// read is not fixed.
    Scheduler,
    /// `CLOCK_MONOTONIC`. It stands still while the machine is suspended.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`. It stands still while the machine is suspended.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`. It runs while the machine is suspended.
    Boot,
    /// Another clock. Contains its `clockid_t`.
    Other(i32),
    /// Unknown, because the recording does not state its clock.
    Unknown,
}

impl Clock {
    fn from_id(id: i32) -> Clock {
        match id {
            1 => Clock::Monotonic,
            4 => Clock::MonotonicRaw,
            7 => Clock::Boot,
            other => Clock::Other(other),
        }
    }
}

impl Attribute {
    /// Reads a `perf_event_attr` of any version. Returns the attribute and its size in bytes. Returns `None` if there
    /// are too few bytes.
    pub(crate) fn read(bytes: &[u8], order: Order) -> Option<(Attribute, usize)> {
        let mut fields = Bytes::new(bytes, order);
        let kind = fields.u32()?;
        let size = fields.len32()?;
        if size < LEAST_SIZE || size > bytes.len() {
            return None;
        }
        let mut fields = Bytes::new(&bytes[8..size], order);
        let config = fields.u64()?;
        let period_or_frequency = fields.u64()?;
        let sample_type = fields.u64()?;
        let read_format = fields.u64()?;
        let flags = fields.u64()?;
        // On big-endian machines, bit fields begin at the most significant bit.
        let flags = match order {
            Order::Little => flags,
            Order::Big => flags.reverse_bits(),
        };
        let has = |bit: u32| flags >> bit & 1 != 0;
        // The id of the clock is 44 bytes after the flags. Structures of fewer than 96 bytes lack it.
        let clock_id = fields.take(44).and_then(|_| fields.u32());
        Some((
            Attribute {
                kind,
                config,
                period_or_frequency,
                is_frequency: has(flag::FREQUENCY),
                name: None,
                clock: match clock_id.filter(|_| has(flag::USE_CLOCKID)) {
                    Some(id) => Clock::from_id(id.cast_signed()),
                    None => Clock::Scheduler,
                },
                marks_exec: has(flag::COMM_EXEC),
                layout: SampleLayout::new(sample_type, read_format, has(flag::SAMPLE_ID_ALL)),
            },
            size,
        ))
    }

    /// Returns the name of the event. If the recording does not contain it, makes it from the type and the number of the
    /// event.
    pub fn known_name(&self) -> String {
        let default_name = || event_name::event_name(self.kind, self.config);
        self.name.clone().unwrap_or_else(default_name)
    }

    /// Returns true if the call chains of the event were recorded.
    pub fn has_chains(&self) -> bool {
        self.layout.has_chains()
    }

    /// Returns true if the event is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == 2
    }
}
