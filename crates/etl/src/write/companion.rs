//! Events with further information about a session: enabled groups, partition, dropped events.

use super::injected::Injected;
use super::payload::Payload;
use crate::guid::Guid;
use crate::ids::class::LOST_EVENT;
#[cfg(doc)]
use crate::ids::hook;

/// Returns the payload of [`hook::EXTENSION`] and [`hook::END_EXTENSION`]: the enabled groups of
/// kernel events. A group flag has 32 bits. Its top three bits are the index *i* of its mask, and
/// the other bits are set in mask *i*. `kernel_version` is the version of the kernel's events: 42
/// in Windows 7 and 8, 80 in build 19041.
pub fn extension(masks: [u32; 8], kernel_version: u32) -> Payload {
    let mut payload = Payload::new();
    for mask in masks {
        payload.u32(mask);
    }
    payload.u32(kernel_version);
    payload
}

/// Returns the payload of [`hook::LAST_DROPPED_TIMES`], which sessions of Windows 11 log when they stop. It has
/// one raw time per CPU; 0 means that the CPU dropped no event.
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
    /// Kind of partition; 4 is a container.
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

/// Returns the event with which a real-time session reports a lost event.
pub fn lost_event() -> Injected {
    Injected {
        class: LOST_EVENT,
        opcode: 32,
        version: 0,
        payload: Payload::new(),
    }
}
