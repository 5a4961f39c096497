//! Event of a page fault that reads from a disk.

use super::cursor::Cursor;

/// HardFault, hook 0x0220: a page was read from a file. Windows logs the event when the read is
/// complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardFault {
    /// Raw time of the fault's start, in ticks of the session's clock.
    pub initial_time: u64,
    /// Offset in the file, in bytes.
    pub read_offset: u64,
    /// Virtual address whose access caused the fault.
    pub virtual_address: u64,
    /// File key. A `FileName` event with the same key gives the file's name.
    pub file_object: u64,
    /// Thread that waited for the page.
    pub thread_id: u32,
    /// Number of bytes read.
    pub size: u32,
}

impl HardFault {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(HardFault {
            initial_time: cursor.u64()?,
            read_offset: cursor.u64()?,
            virtual_address: cursor.pointer()?,
            file_object: cursor.pointer()?,
            thread_id: cursor.u32()?,
            size: cursor.u32()?,
        })
    }
}
