//! Descriptions of recorded events (`perf_event_attr`).

use crate::bytes::{Bytes, Order};
use crate::sample::SampleLayout;

/// Size of the first version of `perf_event_attr`, in bytes.
const LEAST_SIZE: usize = 64;

/// Bits of `perf_event_attr::flags`.
mod flag {
    pub(super) const SAMPLE_ID_ALL: u32 = 18;
    pub(super) const USE_CLOCKID: u32 = 25;
}

/// Kind of a recorded event (`perf_event_attr`).
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Type: 0 hardware, 1 software, 2 tracepoint, 3 cache, 4 raw, 5 breakpoint, larger numbers a device.
    pub kind: u32,
    /// Event within the type. For a tracepoint, its id in [`Format::id`](crate::Format::id).
    pub config: u64,
    /// Number of events, or events per second, between two samples.
    pub period_or_frequency: u64,
    /// Name, if the recording has it.
    pub name: Option<String>,
    /// Clock of the times.
    pub clock: Clock,
    /// Ids of records of this event. A recording with one event may have no ids.
    pub(crate) ids: Vec<u64>,
    pub(crate) layout: SampleLayout,
}

/// Clock of a recording's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Clock of the scheduler (`sched_clock`), the default of perf. It has no fixed relation to clocks of programs.
    Scheduler,
    /// `CLOCK_MONOTONIC`. It stands still while the machine is suspended.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`. It stands still while the machine is suspended.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`. It runs while the machine is suspended.
    Boot,
    /// Another clock, by its `clockid_t`.
    Other(i32),
}

impl Clock {
    fn of(id: i32) -> Clock {
        match id {
            1 => Clock::Monotonic,
            4 => Clock::MonotonicRaw,
            7 => Clock::Boot,
            other => Clock::Other(other),
        }
    }
}

impl Attribute {
    /// Reads a `perf_event_attr` of any version; `None` if it is too short. Returns the attribute and its size.
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
        // On machines with big-endian numbers, bit fields begin at the most significant bit.
        let flags = match order {
            Order::Little => flags,
            Order::Big => flags.reverse_bits(),
        };
        let has = |bit: u32| flags >> bit & 1 != 0;
        // The clock's id is 44 bytes after the flags, in version 4 of the structure and later.
        let clock_id = fields.take(44).and_then(|_| fields.u32());
        Some((
            Attribute {
                kind,
                config,
                period_or_frequency,
                name: None,
                clock: match clock_id.filter(|_| has(flag::USE_CLOCKID)) {
                    Some(id) => Clock::of(id.cast_signed()),
                    None => Clock::Scheduler,
                },
                ids: Vec::new(),
                layout: SampleLayout::new(sample_type, read_format, has(flag::SAMPLE_ID_ALL)),
            },
            size,
        ))
    }

    /// Returns true for a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == 2
    }
}
