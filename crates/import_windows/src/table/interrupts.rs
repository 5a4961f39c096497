//! `interrupts`: interrupt service routines and deferred procedure calls.

use events::ids::hook;
use events::kernel::Interrupt;
use tables::Interrupts;

use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for Interrupts {
    const READS: Reads = Reads {
        hooks: &[
            hook::MESSAGE_ISR..=hook::MESSAGE_ISR,
            hook::THREADED_DPC..=hook::IO_TIMER,
            hook::PASSIVE_ISR..=hook::PASSIVE_ISR,
        ],
        ..Reads::NOTHING
    };

    #[inline]
    fn push(raw: &mut Interrupts, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let interrupt = Interrupt::read(
            event.opcode()?,
            event.payload(),
            event.version()?,
            event.pointer_size(),
        )?;
        let end = event.time_ns();
        let start = crate::time::earlier_ns(event, interrupt.initial_time);
        raw.start_ns.push(start);
        raw.end_ns.push(end);
        raw.cpu.push(event.cpu());
        raw.kind.0.push(interrupt.kind);
        raw.routine.push(interrupt.routine);
        raw.duration_ns
            .push(start.map(|start| end.saturating_sub(start)));
        raw.vector.push(interrupt.vector);
        raw.return_value.push(interrupt.return_value);
        raw.message_number.push(interrupt.message_number);
        raw.name.push(None);
        Some(())
    }
}
