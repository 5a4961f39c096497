//! `ready_threads`: waiting threads that become ready to run.

use events::ids::hook;
use events::kernel::ReadyThread;
use tables::import::TimedValues;
use tables::{ReadiedOnWindows, ReadyEvent, ReadyThreads};

use crate::place_of;
use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for ReadyThreads {
    const READS: Reads = Reads {
        hooks: &[hook::READY_THREAD..=hook::READY_THREAD],
        ..Reads::NOTHING
    };

    #[inline]
    fn push(raw: &mut TimedValues<ReadyEvent>, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let payload = ReadyThread::read(event.payload(), event.version()?, event.pointer_size())?;
        let readied = ReadyEvent {
            cpu: event.cpu(),
            place: place_of(event),
            thread_id: payload.thread_id,
            recorded_by: None,
            by_dpc: payload.by_dpc(),
            of_windows: Some(ReadiedOnWindows {
                adjust_reason: payload.adjust_reason,
                adjust_increment: payload.adjust_increment,
                kernel_stack_not_resident: payload.kernel_stack_not_resident(),
                process_out_of_memory: payload.process_out_of_memory(),
                direct_switch_attempt: payload.direct_switch_attempt(),
            }),
        };
        raw.0.push((event.time_ns(), readied));
        Some(())
    }
}
