//! Events that a merge puts into a log to make it understood elsewhere.

use super::event::ClassicEvent;
use super::payload::Payload;
use crate::guid::Guid;

/// A classic event to be logged with [`super::Writer::classic`]: what it is and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Event class.
    pub class: Guid,
    /// Opcode.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// The payload.
    pub payload: Payload,
}

impl Injected {
    /// The event's identity when a thread logs it at a raw time. The relogger takes both over from
    /// the event that it describes.
    pub fn at(&self, time: i64, thread_id: u32, process_id: u32) -> ClassicEvent {
        ClassicEvent {
            class: self.class,
            opcode: self.opcode,
            version: self.version,
            time,
            thread_id,
            process_id,
        }
    }
}
