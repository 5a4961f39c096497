//! `samples`: code that CPUs were executing when the profile timer fired.

use etl::le;
use events::ids::hook;
use events::kernel::Sample;
use tables::Samples;

use crate::event_buffer::BufferedEvent;
use crate::register::{FromEvents, IncomingEvent, Reads};

/// Events that state the time between two samples. They are logged when this time is set, and at the start
/// and the end of the session.
pub(crate) const INTERVAL_EVENTS: Reads = Reads {
    hooks: &[hook::SAMPLE_SET_INTERVAL..=hook::SAMPLE_DC_END],
    ..Reads::NOTHING
};

/// Returns the first interval of the profile timer (source 0) in the events, in nanoseconds.
pub(crate) fn interval_ns(events: &[BufferedEvent<'_>]) -> Option<i64> {
    let interval = |event: &BufferedEvent<'_>| {
        let is_timer = le::u32(event.payload, 0)? == 0;
        let units_of_100_ns = le::u32(event.payload, 4)?;
        is_timer.then_some(i64::from(units_of_100_ns) * 100)
    };
    events.iter().find_map(interval)
}

impl FromEvents for Samples {
    const READS: Reads = Reads {
        hooks: &[hook::SAMPLE..=hook::SAMPLE],
        ..Reads::NOTHING
    };

    /// Adds a sample. The flags for DPCs and ISRs are used since Windows 7. The priority and the rank are
    /// used since Windows 8. The reason is that a trace of Windows 7 SP1 has the flags, but every priority
    /// and every rank is 0. According to the documentation, the byte with the flags and the byte with the
    /// rank are 0 in older systems.
    #[inline]
    fn push(raw: &mut Samples, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let sample = Sample::read(event.payload(), event.version()?, event.pointer_size())?;
        let has_flags = incoming.os_version >= (6, 1) && sample.flags.is_some();
        let has_priority = incoming.os_version >= (6, 2);
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(Some(event.cpu()));
        raw.address.push(sample.instruction_pointer);
        raw.thread_id.push(sample.thread_id);
        raw.count.push(sample.count);
        raw.in_dpc.push(has_flags.then(|| sample.in_dpc()));
        raw.in_isr.push(has_flags.then(|| sample.in_isr()));
        raw.priority
            .push(sample.priority().filter(|_| has_priority));
        raw.rank.push(sample.rank.filter(|_| has_priority));
        Some(())
    }
}
