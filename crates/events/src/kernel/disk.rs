//! Events of disk requests.

use super::cursor::Cursor;

/// DiskIo Read and Write, and the same events of optical disks (opcodes 10, 11, 55 and 56 of the disk class).
/// Windows logs these events when a request completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskTransfer {
    /// Number of the disk.
    pub disk: u32,
    /// Flags of the request; see [`super::irp_flags`] and [`DiskTransfer::io_priority`].
    pub irp_flags: u32,
    /// Number of bytes transferred.
    pub size: u32,
    /// Offset on the disk, in bytes.
    pub offset: u64,
    /// File key. A `FileName` event with the same key gives the file's name.
    pub file_object: u64,
    /// Address of the request packet. The event of the same request's start has the same address. Present
    /// since version 2.
    pub irp: Option<u64>,
    /// Time from the request's start to its completion, in ticks of the performance counter.
    /// Present since version 1.
    pub response_time: Option<u64>,
    /// Thread that issued the request. Present since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskTransfer {
    /// Reads the payload. Returns `None` if the payload is too short.
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

    /// Returns the priority of the request; see [`super::io_priority`].
    pub fn io_priority(&self) -> u8 {
        (self.irp_flags >> 17 & 7) as u8
    }
}

/// DiskIo ReadInit, WriteInit and FlushInit, and the same events of optical disks (opcodes 12, 13, 15 and 58
/// to 60 of the disk class). Windows logs these events when a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStart {
    /// Address of the request packet. The event of the same request's completion has the same address.
    pub irp: u64,
    /// Thread that issued the request. Present since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskStart {
    /// Reads the payload. Returns `None` if the payload is too short.
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

/// DiskIo FlushBuffers, and the same event of optical disks (opcodes 14 and 57 of the disk class). Windows
/// logs this event when the flush completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFlush {
    /// Number of the disk.
    pub disk: u32,
    /// Flags of the request; see [`super::irp_flags`].
    pub irp_flags: u32,
    /// Duration of the flush in ticks of the performance counter.
    pub response_time: u64,
    /// Address of the request packet.
    pub irp: u64,
    /// Thread that issued the request. Present since version 3.
    pub issuing_thread_id: Option<u32>,
}

impl DiskFlush {
    /// Reads the payload. Returns `None` if the payload is too short.
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
