//! Disk requests, page faults that read from a disk, and file names.

use std::io::{Seek, Write};

use super::payload::{Payload, Small};
use super::{EventKind, Log, Stack, Who};
use crate::time::Time;
use crate::windows::Windows;

/// Kind of disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskAction {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Flush of the disk's cache.
    Flush,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskRequest {
    /// Kind of the request.
    pub(crate) action: DiskAction,
    /// Disk number.
    pub(crate) disk: u32,
    /// Address of the I/O request packet (IRP). It is the same at the start and at the completion of the
    /// request.
    pub(crate) irp: u64,
    /// Thread that issues the request.
    pub(crate) by: Who,
    /// Number of bytes to transfer.
    pub(crate) bytes: u32,
    /// Offset on the disk, in bytes.
    pub(crate) offset: u64,
    /// Key of the file; see [`Log::file`].
    pub(crate) file: u64,
    /// True for paging I/O, for example a read that resolves a page fault.
    pub(crate) is_paging: bool,
    /// I/O priority, from 1 (very low) to 5 (critical); 0 if it is not set.
    pub(crate) priority: u8,
}

impl DiskRequest {
    fn irp_flags(&self) -> u32 {
        let flags = match (self.action, self.is_paging) {
            // `IRP_NOCACHE`, `IRP_PAGING_IO` and, for reads, `IRP_SYNCHRONOUS_PAGING_IO`.
            (DiskAction::Read, true) => 0x43,
            (DiskAction::Write, true) => 0x3,
            // `IRP_NOCACHE`, `IRP_DEFER_IO_COMPLETION` and the bit for reads or writes.
            (DiskAction::Read, false) => 0x901,
            (DiskAction::Write, false) => 0xA01,
            (DiskAction::Flush, _) => 0,
        };
        flags | u32::from(self.priority & 7) << 17
    }
}

/// A page fault that was resolved by a disk read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HardFault {
    /// Time at which the fault began.
    pub(crate) began: Time,
    /// Thread that waited for the read.
    pub(crate) thread: u32,
    /// Virtual address whose access caused the fault.
    pub(crate) address: u64,
    /// Key of the file; see [`Log::file`].
    pub(crate) file: u64,
    /// Offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Number of bytes read.
    pub(crate) bytes: u32,
}

impl<W: Write + Seek> Log<W> {
    /// Returns the key by which events refer to the file with this NT path. The names of all files
    /// with a key are logged at the trace's end.
    pub(crate) fn file(&mut self, path: &str) -> u64 {
        let known = self.files.iter().position(|file| file == path);
        let index = known.unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        });
        file_key(index)
    }

    /// Logs the start of a disk request, with the stack of the requesting thread.
    pub(crate) fn disk_start(
        &mut self,
        cpu: u16,
        time: Time,
        request: &DiskRequest,
        stack: Option<Stack>,
    ) {
        let kind = match request.action {
            DiskAction::Read => EventKind::DiskReadInit,
            DiskAction::Write => EventKind::DiskWriteInit,
            DiskAction::Flush => EventKind::DiskFlushInit,
        };
        let mut payload = Small::new();
        payload.u64(request.irp);
        self.put_thread(&mut payload, request);
        self.kernel(kind, cpu, time, Some(request.by), payload.as_slice(), stack);
    }

    /// Logs the completion of a disk request that started at `began`.
    pub(crate) fn disk_end(&mut self, cpu: u16, time: Time, request: &DiskRequest, began: Time) {
        let kind = match request.action {
            DiskAction::Read => EventKind::DiskRead,
            DiskAction::Write => EventKind::DiskWrite,
            DiskAction::Flush => EventKind::DiskFlush,
        };
        let response_time = time.saturating_sub(began);
        let mut payload = Small::new();
        payload.u32(request.disk).u32(request.irp_flags());
        match request.action {
            DiskAction::Flush => payload.u64(response_time).u64(request.irp),
            DiskAction::Read | DiskAction::Write => payload
                .u32(request.bytes)
                .u32(0)
                .u64(request.offset)
                .u64(request.file)
                .u64(request.irp)
                .u64(response_time),
        };
        self.put_thread(&mut payload, request);
        // Since Windows 8, the payload contains the requesting thread, and the header does not.
        let who = (self.computer.windows == Windows::Seven).then_some(request.by);
        self.kernel(kind, cpu, time, who, payload.as_slice(), None);
    }

    /// Logs a hard fault at its end, with the stack of the waiting thread.
    pub(crate) fn hard_fault(
        &mut self,
        cpu: u16,
        time: Time,
        fault: &HardFault,
        stack: Option<Stack>,
    ) {
        let mut payload = Small::new();
        payload
            .u64(self.raw(cpu, fault.began) as u64)
            .u64(fault.offset)
            .u64(fault.address)
            .u64(fault.file)
            .u32(fault.thread)
            .u32(fault.bytes);
        self.kernel(
            EventKind::HardFault,
            cpu,
            time,
            None,
            payload.as_slice(),
            stack,
        );
    }

    /// Logs the names of all files.
    pub(super) fn file_names(&mut self, time: Time) {
        for (index, path) in std::mem::take(&mut self.files).iter().enumerate() {
            let mut payload = Vec::new();
            payload.u64(file_key(index)).wide(path);
            self.kernel(EventKind::FileName, 0, time, None, &payload, None);
        }
    }

    /// Appends the id of the requesting thread if the release is Windows 8 or later.
    fn put_thread(&self, payload: &mut Small, request: &DiskRequest) {
        if self.computer.windows > Windows::Seven {
            payload.u32(request.by.thread);
        }
    }
}

/// Returns the address of a file's kernel object. The address is invented. Events use it as the key of the
/// file.
fn file_key(index: usize) -> u64 {
    0xFFFF_B000_0000_0000 + ((index as u64) << 8)
}
