//! What a session says of itself beside its header: groups enabled, partition, what was dropped.

use super::injected::Injected;
use super::payload::Payload;
use crate::guid::Guid;
use crate::reader::LOST_EVENT;

/// Hooks of a session's own events, all of version 2.
pub mod hook {
    /// Groups enabled in a kernel session; payload by [`super::extension`].
    pub const EXTENSION: u16 = 0x0005;
    /// The rundown at the session's stop is complete; no payload.
    pub const RUNDOWN_COMPLETE: u16 = 0x0008;
    /// As [`EXTENSION`], when the session stops.
    pub const END_EXTENSION: u16 = 0x0020;
    /// The partition, or container, in which the session ran.
    pub const PARTITION_INFO: u16 = 0x0050;
    /// When each CPU last dropped an event; payload by [`super::last_dropped_times`].
    pub const LAST_DROPPED_TIMES: u16 = 0x0052;
}

/// Payload of [`hook::EXTENSION`] and [`hook::END_EXTENSION`]: which groups are enabled. Mask *i*
/// has the flags whose top three bits are *i*, without these bits. `kernel_version` is the version
/// of the kernel's events: 42 in Windows 7 and 8, 80 in build 19041.
pub fn extension(masks: [u32; 8], kernel_version: u32) -> Payload {
    let mut payload = Payload::new();
    for mask in masks {
        payload.u32(mask);
    }
    payload.u32(kernel_version);
    payload
}

/// Payload of [`hook::LAST_DROPPED_TIMES`], which sessions of Windows 11 log when they stop: one
/// raw time per CPU, 0 where nothing was dropped.
pub fn last_dropped_times(times: &[i64]) -> Payload {
    let mut payload = Payload::new();
    payload.u32(times.len() as u32).u32(0);
    for time in times {
        payload.i64(*time);
    }
    payload
}

/// The partition, or container, in which a session ran. All zero on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Kind of partition; 4 in containers.
    pub partition_type: u32,
    /// Difference of the performance counter to the root partition's, in ticks.
    pub qpc_offset: i64,
    /// The partition.
    pub id: Guid,
    /// Its parent.
    pub parent: Guid,
}

impl PartitionInfo {
    /// Payload of [`hook::PARTITION_INFO`].
    pub(super) fn payload(&self) -> [u8; 48] {
        let mut payload = [0; 48];
        payload[4..8].copy_from_slice(&self.partition_type.to_le_bytes());
        payload[8..16].copy_from_slice(&self.qpc_offset.to_le_bytes());
        payload[16..32].copy_from_slice(&self.id.0);
        payload[32..48].copy_from_slice(&self.parent.0);
        payload
    }
}

/// The event by which a real-time session says that it lost an event.
pub fn lost_event() -> Injected {
    lost(32)
}

/// The event by which a real-time session says that it lost a buffer.
pub fn lost_buffer() -> Injected {
    lost(33)
}

fn lost(opcode: u8) -> Injected {
    Injected {
        class: LOST_EVENT,
        opcode,
        version: 0,
        payload: Payload::new(),
    }
}
