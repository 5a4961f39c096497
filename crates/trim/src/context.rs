//! Events that every part of a trace keeps, because other events cannot be interpreted without them.

use etl::Event;
use events::ids::class::{IMAGE_ID, LOST_EVENT, SYS_CONFIG_EX};
use events::ids::hook;
use events::ids::provider::LAGLAB_SIMULATOR;
use raw_events::EventKind;

/// Returns true if other events cannot be interpreted without the event. Such an event does one of these:
///
/// * It belongs to the logging session.
/// * It marks a trace as simulated.
/// * It reports the start or end of a process, a thread or an image.
/// * It names a file, a registry key or an object type.
/// * It contains a stack that is logged once.
/// * It describes the machine's configuration.
/// * It contains metadata.
pub(crate) fn is_needed(event: &Event<'_>) -> bool {
    let is_mark = event.guid() == Some(LAGLAB_SIMULATOR);
    if is_mark || events::is_metadata(event) || raw_events::is_life(event) {
        return true;
    }
    if let Some(hook) = event.hook() {
        let [group, opcode] = hook.to_be_bytes();
        return is_needed_class(group, opcode);
    }
    match EventKind::new(event) {
        EventKind::Classic { guid, opcode, .. } => {
            let class = events::kernel::Class::of_guid(guid);
            [IMAGE_ID, SYS_CONFIG_EX, LOST_EVENT].contains(&guid)
                || class
                    .and_then(|class| class.group)
                    .is_some_and(|group| is_needed_class(group, opcode))
        }
        _ => false,
    }
}

fn is_needed_class(group: u8, opcode: u8) -> bool {
    match group {
        // Header group: all events of the logging session except the log's header.
        0x00 => opcode != 0,
        // Process: starts and ends. The oldest systems also log images in this group.
        0x03 => matches!(opcode, 1..=4 | 10 | 11 | 39),
        // FileIo: names of files.
        0x04 => matches!(opcode, 0 | 32 | 35 | 36),
        // Thread: starts, ends and names.
        0x05 => matches!(opcode, 1..=4 | 72),
        // Registry: names of keys.
        0x09 => matches!(opcode, 22..=25),
        // SystemConfig: all events.
        0x0B => true,
        // PerfInfo: configuration of the hardware counters, and the sampling interval.
        0x0F => matches!(opcode, 48 | 72..=74),
        // Object: names of types.
        0x11 => matches!(opcode, 36 | 37),
        // Image: loads, unloads, and the base address of the kernel.
        0x14 => matches!(opcode, 2..=4 | 10 | 33 | 34),
        // StackWalk: stacks that are logged once. Other events refer to them by key.
        0x18 => matches!(opcode, 34..=36),
        _ => false,
    }
}

/// Returns true if the event is about a DPC or an interrupt service routine.
pub(crate) fn is_interrupt(event: &Event<'_>) -> bool {
    // These are events of PerfInfo. The range contains the events threaded DPC, ISR, DPC and timer DPC.
    matches!(
        event.hook(),
        Some(hook::MESSAGE_ISR | hook::THREADED_DPC..=hook::TIMER_DPC)
    )
}
