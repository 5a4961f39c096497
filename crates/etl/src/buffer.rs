//! Buffer headers (`WMI_BUFFER_HEADER`) and where buffers lie.
//!
//! Offsets and flags follow Geoff Chappell's study of NTWMI and phnt's `ntwmi.h`; both forms of
//! the processor index and the pre-Vista header are read.

use crate::le;

/// Bytes of a buffer header; the first event follows it.
pub const HEADER_SIZE: usize = 0x48;

/// The largest buffer that is believed. Windows allows 16 MiB; the rest is headroom.
pub(crate) const MAX_BUFFER: u32 = 64 << 20;

/// A compressed buffer may not claim to expand beyond this many times its stored size (header
/// included). Real trace data stays below 40; without a bound a few bytes could demand gigabytes.
pub(crate) const MAX_EXPANSION: u64 = 1024;

/// Buffer flags (`BufferFlag`).
pub mod flag {
    /// Written by a flush or when the session stopped.
    pub const FLUSH_MARKER: u16 = 0x01;
    /// Events were lost while this buffer was current.
    pub const EVENTS_LOST: u16 = 0x02;
    /// Buffers were lost before this one.
    pub const BUFFER_LOST: u16 = 0x04;
    /// The 16-bit processor index is valid.
    pub const PROCESSOR_INDEX: u16 = 0x20;
    /// The bytes after the header are one compressed block.
    pub const COMPRESSED: u16 = 0x40;
}

/// `BufferType` of the buffer that begins a log.
pub(crate) const TYPE_HEADER: u16 = 4;

/// Fields of a buffer header that mean something on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferHeader {
    /// Bytes from this header to the next one in the file; 0 in pre-Vista logs, which do not say.
    pub(crate) stored_size: u32,
    /// Valid bytes including the header, after decompression.
    pub(crate) valid_size: u32,
    pub(crate) sequence: i64,
    pub(crate) processor_index: u16,
    pub(crate) logger_id: u16,
    pub(crate) state: u32,
    pub(crate) flags: u16,
    pub(crate) buffer_type: u16,
}

impl BufferHeader {
    /// Reads a Vista-or-later header from the first [`HEADER_SIZE`] bytes of `b`.
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

    /// Reads a Windows 2000/XP/2003 header, where the size of all buffers is in the log-file
    /// header (single public source: Chappell).
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

    /// Whether this can be the header of a buffer: used to find the next buffer after damage, so
    /// every field that has a narrow range is checked.
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

    /// The CPU that owns the buffer. Before Windows 8 only the low byte is the processor number
    /// (the high one is an alignment) unless the flag says otherwise.
    pub(crate) fn cpu(&self, wide_index: bool) -> u16 {
        if wide_index || self.flags & flag::PROCESSOR_INDEX != 0 {
            self.processor_index & 0x7FF
        } else {
            self.processor_index & 0xFF
        }
    }
}

/// Valid bytes of a buffer: `SavedOffset`, or `Offset` where that reaches further. The two differ
/// in header buffers only, which leave `SavedOffset` 0 (Windows 7) or log more events behind it
/// (seen in merged and live logs of Windows 10 and 11; independent readers count those events).
fn valid_size(header: &[u8]) -> Option<u32> {
    Some(le::u32(header, 0x04)?.max(le::u32(header, 0x30)?))
}

/// One buffer of a trace: where it lies and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRef {
    /// Index of its segment in [`crate::Trace::segments`].
    pub segment: u16,
    /// System-wide index of the CPU that owns it.
    pub cpu: u16,
    /// [`flag`] bits.
    pub flags: u16,
    /// Offset of its header in its file, in bytes.
    pub offset: u64,
    /// Bytes it takes in the file, header included.
    pub stored_size: u32,
    /// Valid bytes, header included, after decompression.
    pub valid_size: u32,
    /// Allocation order within the session.
    pub sequence: i64,
    /// Raw time of its first event; of its predecessor's where no event carries one.
    pub first_time: i64,
}

impl BufferRef {
    /// Whether its bytes are compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & flag::COMPRESSED != 0
    }
}
