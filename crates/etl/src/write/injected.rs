//! Events that are added when a trace is merged. With these events, the trace can be decoded on other
//! machines.

use super::event::ClassicEvent;
use super::payload::Payload;
use crate::guid::Guid;

/// A classic event for [`super::Writer::classic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// GUID of the event class.
    pub class: Guid,
    /// Opcode of the event.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Payload of the event.
    pub payload: Payload,
}

impl Injected {
    /// Returns the header data of the event, with the given raw time, thread and process. The injected event
    /// describes another event. Windows' relogger copies the time, the thread and the process from that other
    /// event.
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
