//! `hard_faults`: accesses to memory pages that had to be read from a disk.

use events::ids::hook;
use events::kernel::HardFault;
use tables::{FaultEvents, HardFaults};

use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for HardFaults {
    const READS: Reads = Reads {
        hooks: &[hook::HARD_FAULT..=hook::HARD_FAULT],
        ..Reads::NOTHING
    };

    fn push(raw: &mut FaultEvents, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let (raw, event) = (&mut raw.rows, incoming.event);
        let fault = HardFault::read(event.payload(), event.version()?, event.pointer_size())?;
        let time = event.time_ns();
        let start = crate::time::earlier_ns(event, fault.initial_time);
        raw.time_ns.push(time);
        raw.start_ns.push(start);
        raw.duration_ns
            .push(start.map(|start| time.saturating_sub(start)));
        raw.cpu.push(Some(event.cpu()));
        raw.thread_id.push(fault.thread_id);
        raw.address.push(fault.virtual_address);
        raw.file_object.push(Some(fault.file_object));
        raw.offset_bytes.push(Some(fault.read_offset));
        raw.size_bytes.push(Some(fault.size));
        Some(())
    }
}
