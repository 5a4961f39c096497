//! `context_switches`: switches of CPUs from one thread to another.

use events::ids::hook;
use events::kernel::ContextSwitch;
use tables::import::TimedValues;
use tables::{ContextSwitches, Switch};

use crate::place_of;
use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for ContextSwitches {
    const READS: Reads = Reads {
        hooks: &[hook::CONTEXT_SWITCH..=hook::CONTEXT_SWITCH],
        ..Reads::NOTHING
    };

    #[inline]
    fn push(raw: &mut TimedValues<Switch>, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let version = event.version()?;
        let payload = ContextSwitch::read(event.payload(), version, event.pointer_size())?;
        // According to the documentation, versions 2 and 3 of the event also have a rank. But in known traces, the
        // events of these versions have no rank.
        let has_ranks = version >= 4;
        let switch = Switch {
            cpu: event.cpu(),
            place: place_of(event),
            seen_for_ns: None,
            new_thread_id: payload.new_thread_id,
            old_thread_id: payload.old_thread_id,
            new_priority: payload.new_priority,
            old_priority: payload.old_priority,
            new_nice: None,
            old_nice: None,
            old_state: payload.old_state,
            old_wait_reason: Some(payload.old_wait_reason),
            old_wait_mode: Some(payload.old_wait_mode),
            futex: None,
            old_ideal_processor: Some(payload.old_ideal_processor),
            old_rank: payload.old_rank().filter(|_| has_ranks),
            previous_c_state: payload.previous_c_state(),
            new_priority_decrement: payload.new_priority_decrement,
            new_wait_time: payload.new_wait_time,
            old_remaining_quantum: payload.old_remaining_quantum,
            new_quantum: payload.new_quantum,
            old_quantum: payload.old_quantum,
            old_qos: payload.old_qos,
            new_qos: payload.new_qos,
            bam_important: payload.bam_important,
            unknown_flags: payload.unknown_flags,
        };
        raw.0.push((event.time_ns(), switch));
        Some(())
    }
}
