//! Disk requests, page faults that wait for a disk, and names of files.

use std::io::{Seek, Write};

use super::payload::{Payload, Small};
use super::{EventKind, Log, Stack, Who};
use crate::time::Time;
use crate::windows::Windows;

/// What a disk is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskAction {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To empty its cache.
    Flush,
}

/// A request to a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskRequest {
    /// What it asks for.
    pub(crate) action: DiskAction,
    /// The disk's number.
    pub(crate) disk: u32,
    /// The request packet: the same for its beginning and its end.
    pub(crate) irp: u64,
    /// The thread that asks.
    pub(crate) by: Who,
    /// Bytes to move.
    pub(crate) bytes: u32,
    /// Offset on the disk, in bytes.
    pub(crate) offset: u64,
    /// Key of the file; see [`Log::file`].
    pub(crate) file: u64,
    /// It brings in a page that a thread waits for.
    pub(crate) is_paging: bool,
    /// Its priority: 0 not set, 1 very low to 5 critical.
    pub(crate) priority: u8,
}

impl DiskRequest {
    /// Flags of the request packet.
    fn irp_flags(&self) -> u32 {
        let flags = match (self.action, self.is_paging) {
            // Not cached, paging, and synchronous at that.
            (DiskAction::Read, true) => 0x43,
            (DiskAction::Write, true) => 0x3,
            // Not cached, to be completed later.
            (DiskAction::Read, false) => 0x901,
            (DiskAction::Write, false) => 0xA01,
            (DiskAction::Flush, _) => 0,
        };
        flags | u32::from(self.priority & 7) << 17
    }
}

/// A page fault that has been served from a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HardFault {
    /// When the page was missed.
    pub(crate) began: Time,
    /// The thread that waited.
    pub(crate) thread: u32,
    /// The address that it touched.
    pub(crate) address: u64,
    /// Key of the file; see [`Log::file`].
    pub(crate) file: u64,
    /// Offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Bytes read.
    pub(crate) bytes: u32,
}

impl<W: Write + Seek> Log<W> {
    /// The key by which events call a file, given its NT path. The names of all files asked for
    /// are logged when the trace ends.
    pub(crate) fn file(&mut self, path: &str) -> u64 {
        let known = self.files.iter().position(|file| file == path);
        let index = known.unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        });
        file_key(index)
    }

    /// Logs that a disk request begins. The stack is that of the thread that asks.
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

    /// Logs that a disk request that began at `began` is complete.
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
        // Since Windows 8 the payload says who asked, and the header nothing.
        let who = (self.computer.windows == Windows::Seven).then_some(request.by);
        self.kernel(kind, cpu, time, who, payload.as_slice(), None);
    }

    /// Logs a hard fault when its page is there. The stack is that of the thread that waited.
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

    /// Adds the thread that asked, which is logged since Windows 8.
    fn put_thread(&self, payload: &mut Small, request: &DiskRequest) {
        if self.computer.windows > Windows::Seven {
            payload.u32(request.by.thread);
        }
    }
}

/// Made up: where the kernel's object of a file is.
fn file_key(index: usize) -> u64 {
    0xFFFF_B000_0000_0000 + ((index as u64) << 8)
}
