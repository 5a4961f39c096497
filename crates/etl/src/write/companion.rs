//! Events with further information about a session: enabled groups, partition, dropped events.

use super::injected::Injected;
use super::payload::Payload;
use crate::guid::Guid;
use crate::ids::class::LOST_EVENT;
#[cfg(doc)]
use crate::ids::hook;

/// Returns the payload of [`hook::EXTENSION`] and [`hook::END_EXTENSION`]. It contains the enabled groups of kernel
/// events. Each group has a flag of 32 bits. The top three bits of the flag are the index *i* of a mask. If the group
/// is enabled, `masks[i]` contains the other bits of the flag. `kernel_version` is the version of the kernel's
/// events: 42 in Windows 7 and 8, 80 in build 19041.
pub fn extension(masks: [u32; 8], kernel_version: u32) -> Payload {
    let mut payload = Payload::new();
    for mask in masks {
        payload.u32(mask);
    }
    payload.u32(kernel_version);
    payload
}

/// Returns the payload of [`hook::LAST_DROPPED_TIMES`]. Sessions of Windows 11 log this event when they stop.
/// The payload has one raw time per CPU. The time 0 means that the CPU dropped no event.
pub fn last_dropped_times(times: &[i64]) -> Payload {
    let mut payload = Payload::new();
    payload.u32(times.len() as u32).u32(0);
    for time in times {
        payload.i64(*time);
    }
    payload
}

/// Partition or container in which a session runs. All fields are zero on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Kind of the partition. The value 4 means a container.
    pub partition_type: u32,
    /// Difference between the performance counters of this partition and of the root partition, in
    /// ticks.
    pub qpc_offset: i64,
    /// Id of the partition.
    pub id: Guid,
    /// Id of the parent partition.
    pub parent: Guid,
}

impl PartitionInfo {
    /// Returns the payload of [`hook::PARTITION_INFO`].
    pub(super) fn payload(&self) -> [u8; 48] {
        let mut payload = [0; 48];
        payload[4..8].copy_from_slice(&self.partition_type.to_le_bytes());
        payload[8..16].copy_from_slice(&self.qpc_offset.to_le_bytes());
        payload[16..32].copy_from_slice(&self.id.0);
        payload[32..48].copy_from_slice(&self.parent.0);
        payload
    }
}

/// Returns the event that a real-time session logs when it loses an event.
pub fn lost_event() -> Injected {
    Injected {
        class: LOST_EVENT,
        opcode: 32,
        version: 0,
        payload: Payload::new(),
    }
}
