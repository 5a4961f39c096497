//! Events that the merge of a trace adds, so that the trace can be decoded on other machines.

use super::event::ClassicEvent;
use super::payload::Payload;
use crate::guid::Guid;

/// A classic event for [`super::Writer::classic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Event class.
    pub class: Guid,
    /// Opcode.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Payload of the event.
    pub payload: Payload,
}

impl Injected {
    /// Returns the header data of the event, with the given raw time, thread and process. Windows'
    /// relogger copies these values from the event that the injected event describes.
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
