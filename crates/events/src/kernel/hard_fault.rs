//! Page faults that read from a disk.

use super::cursor::Cursor;

/// HardFault, hook 0x0220: a page had to be read from a file; logged when it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardFault {
    /// When the fault began, as raw time of the session's clock.
    pub initial_time: u64,
    /// Offset in the file, in bytes.
    pub read_offset: u64,
    /// The address that was touched.
    pub virtual_address: u64,
    /// Key of the file.
    pub file_object: u64,
    /// The thread that waited.
    pub thread_id: u32,
    /// Bytes read.
    pub size: u32,
}

impl HardFault {
    /// Reads the payload; `None` if it is too short.
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
