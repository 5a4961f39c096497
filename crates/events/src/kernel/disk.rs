//! Requests to disks.

use super::cursor::Cursor;

/// DiskIo Read and Write, and their optical forms: opcodes 10, 11, 55 and 56 of the disk class,
/// logged when the request has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskTransfer {
    /// The disk's number.
    pub disk: u32,
    /// Flags of the request; see [`super::irp_flags`] and [`DiskTransfer::io_priority`].
    pub irp_flags: u32,
    /// Bytes moved.
    pub size: u32,
    /// Offset on the disk, in bytes.
    pub offset: u64,
    /// Key of the file, which file-name events name.
    pub file_object: u64,
    /// The request packet, which the matching init event names. Since version 2.
    pub irp: Option<u64>,
    /// How long the request took from its start to its completion, in ticks of the performance
    /// counter. Since version 1.
    pub response_time: Option<u64>,
    /// The thread that asked. Since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskTransfer {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (disk, irp_flags, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        cursor.skip(4)?;
        let mut transfer = DiskTransfer {
            disk,
            irp_flags,
            size,
            offset: cursor.u64()?,
            file_object: cursor.pointer()?,
            irp: None,
            response_time: None,
            issuing_thread_id: None,
        };
        if version >= 2 {
            transfer.irp = Some(cursor.pointer()?);
        }
        if version >= 1 {
            transfer.response_time = Some(cursor.u64()?);
        }
        if version >= 3 {
            transfer.issuing_thread_id = Some(cursor.u32()?);
        }
        Some(transfer)
    }

    /// Priority of the request; see [`super::io_priority`].
    pub fn io_priority(&self) -> u8 {
        (self.irp_flags >> 17 & 7) as u8
    }
}

/// DiskIo ReadInit, WriteInit and FlushInit, and their optical forms: opcodes 12, 13, 15 and 58
/// to 60 of the disk class, logged when a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStart {
    /// The request packet, which the completion names.
    pub irp: u64,
    /// The thread that asked. Since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskStart {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(DiskStart {
            irp: cursor.pointer()?,
            issuing_thread_id: if version >= 3 {
                Some(cursor.u32()?)
            } else {
                None
            },
        })
    }
}

/// DiskIo FlushBuffers and its optical form: opcodes 14 and 57 of the disk class, logged when the
/// flush has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFlush {
    /// The disk's number.
    pub disk: u32,
    /// Flags of the request; see [`super::irp_flags`].
    pub irp_flags: u32,
    /// How long the flush took, in ticks of the performance counter.
    pub response_time: u64,
    /// The request packet.
    pub irp: u64,
    /// The thread that asked. Since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskFlush {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(DiskFlush {
            disk: cursor.u32()?,
            irp_flags: cursor.u32()?,
            response_time: cursor.u64()?,
            irp: cursor.pointer()?,
            issuing_thread_id: if version >= 3 {
                Some(cursor.u32()?)
            } else {
                None
            },
        })
    }
}
