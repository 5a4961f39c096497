//! Buffer headers (`WMI_BUFFER_HEADER`) and the positions of buffers in files.
//!
//! Offsets and flags follow Geoff Chappell's study of NTWMI and phnt's `ntwmi.h`. This module
//! supports both forms of the processor index, and the header of Windows versions before Vista.

use crate::le;

/// Size of a buffer header in bytes. The first event follows the header.
pub const HEADER_SIZE: usize = 0x48;

/// Maximum accepted size of a buffer in bytes. Windows allows 16 MiB. The limit is higher, so that larger
/// buffers of future versions are accepted.
pub(crate) const MAX_BUFFER: u32 = 64 << 20;

/// Maximum ratio of the expanded size to the stored size of a compressed buffer. Both sizes include the
/// header. Real traces stay below 40. Without this limit, a few bytes could require gigabytes of memory.
pub(crate) const MAX_EXPANSION: u64 = 1024;

/// Buffer flags (`BufferFlag`).
pub mod flag {
    /// The buffer was written because of a flush or because the session stopped.
    pub const FLUSH_MARKER: u16 = 0x01;
    /// Events were lost while this buffer was being filled.
    pub const EVENTS_LOST: u16 = 0x02;
    /// Buffers were lost before this one.
    pub const BUFFER_LOST: u16 = 0x04;
    /// The 16-bit processor index in the buffer header is valid.
    pub const PROCESSOR_INDEX: u16 = 0x20;
    /// The bytes after the header are one compressed block.
    pub const COMPRESSED: u16 = 0x40;
}

/// `BufferType` of the first buffer of a log.
pub(crate) const TYPE_HEADER: u16 = 4;

/// Fields of a buffer header that have a meaning in a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferHeader {
    /// Number of bytes from this header to the next buffer header. Logs before Vista do not have this field;
    /// the log-file header states the size.
    pub(crate) stored_size: u32,
    /// Number of valid bytes after decompression, including the header.
    pub(crate) valid_size: u32,
    pub(crate) sequence: i64,
    pub(crate) processor_index: u16,
    pub(crate) logger_id: u16,
    pub(crate) state: u32,
    pub(crate) flags: u16,
    pub(crate) buffer_type: u16,
}

impl BufferHeader {
    /// Reads a header of Windows Vista or later from the first [`HEADER_SIZE`] bytes of `b`.
    pub(crate) fn read(b: &[u8]) -> Option<BufferHeader> {
        let b = b.get(..HEADER_SIZE)?;
        Some(BufferHeader {
            stored_size: le::u32(b, 0x00)?,
            valid_size: valid_size(b)?,
            sequence: le::i64(b, 0x18)?,
            processor_index: le::u16(b, 0x28)?,
            logger_id: le::u16(b, 0x2A)?,
            state: le::u32(b, 0x2C)?,
            flags: le::u16(b, 0x34)?,
            buffer_type: le::u16(b, 0x36)?,
        })
    }

    /// Reads a header of Windows 2000, XP or 2003. All buffers have the size `stored_size`, which the
    /// log-file header states. The only public source of this format is Chappell's study.
    pub(crate) fn read_pre_vista(b: &[u8], stored_size: u32) -> Option<BufferHeader> {
        let b = b.get(..HEADER_SIZE)?;
        Some(BufferHeader {
            stored_size,
            valid_size: valid_size(b)?,
            sequence: 0,
            processor_index: le::u16(b, 0x28)? & 0xFF,
            logger_id: 0,
            state: 0,
            flags: 0,
            buffer_type: 0,
        })
    }

    /// Returns true if a buffer can have this header. The reader uses this check to find the next buffer after damaged
    /// bytes. So the check includes every field that can have only few values.
    pub(crate) fn is_plausible(&self) -> bool {
        const KNOWN_FLAGS: u16 = 0x7F;
        let stored = self.stored_size;
        let compressed = self.flags & flag::COMPRESSED != 0;
        stored as usize >= HEADER_SIZE
            && stored <= MAX_BUFFER
            && self.valid_size as usize >= HEADER_SIZE
            && self.valid_size <= MAX_BUFFER
            && (compressed || self.valid_size <= stored)
            && self.flags & !KNOWN_FLAGS == 0
            && self.buffer_type <= 7
    }

    /// Returns the CPU that owns the buffer. `wide_index` is true since Windows 8. If `wide_index` is true or
    /// the flag `PROCESSOR_INDEX` is set, the field `processor_index` is a processor index of 11 bits.
    /// Otherwise, the low byte of the field is the processor number, and the high byte is the buffer's
    /// alignment.
    pub(crate) fn cpu(&self, wide_index: bool) -> u16 {
        if wide_index || self.flags & flag::PROCESSOR_INDEX != 0 {
            self.processor_index & 0x7FF
        } else {
            self.processor_index & 0xFF
        }
    }
}

/// Returns the number of valid bytes: `max(SavedOffset, Offset)`. The two fields differ only in header
/// buffers. In Windows 7, `SavedOffset` is 0. In merged and live logs of Windows 10 and 11, the header buffer
/// has further events after `SavedOffset`. Other programs also count these events.
fn valid_size(header: &[u8]) -> Option<u32> {
    Some(le::u32(header, 0x04)?.max(le::u32(header, 0x30)?))
}

/// Position and header fields of one buffer of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRef {
    /// Index of the buffer's segment in [`crate::Trace::segments`].
    pub segment: u16,
    /// System-wide index of the CPU that owns the buffer.
    pub cpu: u16,
    /// Bit set of [`flag`] values.
    pub flags: u16,
    /// Offset of the buffer's header in its file, in bytes.
    pub offset: u64,
    /// Number of bytes in the file, including the header.
    pub stored_size: u32,
    /// Number of valid bytes after decompression, including the header.
    pub valid_size: u32,
    /// Sequence number of the buffer. The session numbers its buffers in the order in which it allocates
    /// them.
    pub sequence: i64,
    /// Raw time of the buffer's first event. If this time is unknown, the field has the `first_time` of the
    /// previous buffer.
    pub first_time: i64,
}

impl BufferRef {
    /// Returns true if the buffer's bytes are compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & flag::COMPRESSED != 0
    }
}
