//! Headers of records, and the numbers of the kinds of records.

use crate::bytes::{Bytes, Order};

/// Size of a record's header in bytes.
pub(crate) const HEADER: usize = 8;

/// Kinds of records (`PERF_RECORD_…`).
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const UNTHROTTLE: u32 = 6;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    /// Lowest kind that the program perf defines. The kernel defines all lower kinds.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const ATTRIBUTE: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const AUX_TRACE: u32 = 71;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED_2: u32 = 83;
}

/// Bits of [`Header::misc`].
pub(crate) mod misc {
    /// `PERF_RECORD_MISC_COMM_EXEC`: the thread has a new name, because its process started a new program.
    pub(crate) const COMM_EXEC: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_SWITCH_OUT`: the thread leaves its CPU.
    pub(crate) const SWITCH_OUT: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: the thread leaves its CPU although it could continue to run.
    pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the record has a build id instead of a device and an inode.
    pub(crate) const MMAP_BUILD_ID: u16 = 1 << 14;
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the record states the size of its build id.
    pub(crate) const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Size of the whole record in bytes, including this header.
    pub(crate) size: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`. Returns `None` if there are too few bytes.
    pub(crate) fn read(bytes: &[u8], order: Order) -> Option<Header> {
        let mut bytes = Bytes::new(bytes, order);
        Some(Header {
            kind: bytes.u32()?,
            misc: bytes.u16()?,
            size: bytes.u16()?.into(),
        })
    }
}

/// Appends a record to `records`. `body` appends the bytes after the header. If the record is larger than its size
/// field can state, appends only the header.
pub(crate) fn write(
    records: &mut Vec<u8>,
    kind: u32,
    order: Order,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let start = records.len();
    records.extend(order.of_u32(kind));
    records.extend([0; 4]);
    body(records);
    let size = u16::try_from(records.len() - start).unwrap_or_else(|_| {
        records.truncate(start + HEADER);
        HEADER as u16
    });
    records[start + 6..start + HEADER].copy_from_slice(&order.of_u16(size));
}
