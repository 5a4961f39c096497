//! Which events stay in every part of a trace, because others cannot be understood without them.

use etl::{Event, Guid};

use crate::key::Key;

const IMAGE_ID: Guid = Guid::new(
    0xb3e6_75d7,
    0x2554,
    0x4f18,
    [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde],
);

pub(super) const SYS_CONFIG_EX: Guid = Guid::new(
    0x9b79_ee91,
    0xb5fd,
    0x41c0,
    [0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0],
);

const LOST_EVENT: Guid = Guid::new(
    0x6a39_9ae0,
    0x4bc6,
    0x4de9,
    [0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e],
);

/// Whether the event tells what others mean: lives of processes, threads and images, names of
/// files, keys and stacks, the machine's configuration, the session's own events, and metadata.
pub(crate) fn is_needed(event: &Event<'_>) -> bool {
    if events::is_metadata(event) || crate::processes::is_life(event) {
        return true;
    }
    if let Some(hook) = event.hook() {
        let [group, opcode] = hook.to_be_bytes();
        return is_needed_class(group, opcode);
    }
    match Key::of(event) {
        Key::Classic { guid, opcode, .. } => {
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
        // The session's own events.
        0x00 => opcode != 0,
        // Process: lives, exits, and images as the oldest systems logged them.
        0x03 => matches!(opcode, 1..=4 | 10 | 11 | 39),
        // FileIo: names of files.
        0x04 => matches!(opcode, 0 | 32 | 35 | 36),
        // Thread: lives and names.
        0x05 => matches!(opcode, 1..=4 | 72),
        // Registry: names of keys.
        0x09 => matches!(opcode, 22..=25),
        // SystemConfig.
        0x0B => true,
        // PerfInfo: which counters, how often samples are taken.
        0x0F => matches!(opcode, 48 | 72..=74),
        // Object: names of types.
        0x11 => matches!(opcode, 36 | 37),
        // Image: lives, and where the kernel lies.
        0x14 => matches!(opcode, 2..=4 | 10 | 33 | 34),
        // StackWalk: stacks that are logged once and referred to.
        0x18 => matches!(opcode, 34..=36),
        _ => false,
    }
}

/// Whether the event tells of a DPC or an interrupt's service routine.
pub(crate) fn is_interrupt(event: &Event<'_>) -> bool {
    // PerfInfo: ISR of a message, threaded DPC, ISR, DPC, timer DPC.
    matches!(event.hook(), Some(0x0F32 | 0x0F42..=0x0F45))
}
