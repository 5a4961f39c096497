//! Records of a recording: their headers, and the contents of those that are not samples.

use crate::bytes::{Bytes, Order};

/// Size of a record's header.
pub(crate) const HEADER: usize = 8;

/// Types of records (`PERF_RECORD_…`).
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    /// First type that perf itself writes; the kernel writes all smaller ones.
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
    /// `PERF_RECORD_MISC_COMM_EXEC`: the name is that of a new program.
    pub(crate) const COMM_EXEC: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_SWITCH_OUT`: the thread leaves its CPU.
    pub(crate) const SWITCH_OUT: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: the thread could have run on.
    pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the record has a build id in place of an inode.
    pub(crate) const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Size of the whole record.
    pub(crate) size: usize,
}

impl Header {
    /// Reads the header at the beginning of the bytes; `None` if they are too few.
    pub(crate) fn read(bytes: &[u8], order: Order) -> Option<Header> {
        let mut bytes = Bytes::new(bytes, order);
        Some(Header {
            kind: bytes.u32()?,
            misc: bytes.u16()?,
            size: bytes.u16()?.into(),
        })
    }
}
