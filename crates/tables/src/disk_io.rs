//! `disk_io`: requests to disks.

use etl::{ClockKind, Event};
use events::kernel::{DiskFlush, DiskStart, DiskTransfer};
use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::schema::table;
use crate::timed::Timed;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per completed request to a disk.
    DiskIo, DiskIoView = "disk_io" sorted by time_ns {
        /// When the request had completed.
        time_ns: Vec<i64> = "header time",
        /// When it started: the time of the init event with the same request packet, or else the
        /// completion less `response_ns`.
        init_ns: Nullable<i64> = "ReadInit, WriteInit, FlushInit: header time, by Irp"
            wpa "Init Time (s)",
        /// How long the disk worked on it: since its start or the completion before on the same
        /// disk, whichever came later.
        service_ns: Nullable<i64> = "time_ns - max(init_ns, the disk's completion before)"
            wpa "Disk Service Time",
        /// How long it stood in the queue before that.
        queue_ns: Nullable<i64> = "duration_ns - service_ns",
        /// From start to completion.
        duration_ns: Nullable<i64> = "time_ns - init_ns" wpa "IO Time",
        /// How long it took by the kernel's own measure.
        response_ns: Nullable<i64> = "HighResResponseTime",
        /// The CPU that logged the completion.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// `read`, `write` or `flush`; also of optical disks.
        kind: Names<DiskIoKind> = "DiskIo Read, Write, FlushBuffers, OpticalRead, OpticalWrite, OpticalFlush"
            wpa "IO Type",
        /// Number of the disk.
        disk: Vec<u32> = "DiskNumber" wpa "Disk",
        /// Where on the disk; not of a flush.
        offset_bytes: Nullable<u64> = "ByteOffset",
        /// How much; not of a flush.
        size_bytes: Nullable<u32> = "TransferSize" wpa "Size",
        /// Priority: 0 not set, 1 very low, 2 low, 3 normal, 4 high, 5 critical.
        priority: Vec<u8> = "IrpFlags bits 17-19" wpa "Priority",
        /// Flags of the request packet.
        irp_flags: Vec<u32> = "IrpFlags",
        /// The request packet. Since version 2 (Windows Vista).
        irp: Nullable<u64> = "Irp",
        /// Key of the file; not of a flush.
        file_object: Nullable<u64> = "FileObject",
        /// The thread that asked. From the completion since version 3 (Windows 8), else from the
        /// init event.
        thread_id: Nullable<u32> = "IssuingThreadId; init event: header thread" wpa "Thread ID",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Its process; 0 of idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// The file, with a drive letter where the trace maps its volume to one.
        path: Text = "FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileObject"
            wpa "Path Name",
        /// The stack of the thread that asked.
        stack_id: Nullable<u32> = "the stack of the init event" wpa "Init Stack",
    }
}

/// What a disk was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskIoKind {
    /// Data from the disk.
    Read,
    /// Data to the disk.
    Write,
    /// Data out of the disk's cache.
    Flush,
}

impl Named for DiskIoKind {
    const NAMES: &'static [&'static str] = &["read", "write", "flush"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl DiskIo {
    /// Adds a row; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let (payload, version) = (event.payload(), event.version()?);
        let kind = match event.opcode()? {
            10 | 55 => DiskIoKind::Read,
            11 | 56 => DiskIoKind::Write,
            _ => DiskIoKind::Flush,
        };
        let (flags, response) = if kind == DiskIoKind::Flush {
            let flush = DiskFlush::read(payload, version, event.pointer_size())?;
            self.disk.push(flush.disk);
            self.offset_bytes.push(None);
            self.size_bytes.push(None);
            self.irp.push(Some(flush.irp));
            self.file_object.push(None);
            self.thread_id.push(flush.issuing_thread_id);
            (flush.irp_flags, Some(flush.response_time))
        } else {
            let transfer = DiskTransfer::read(payload, version, event.pointer_size())?;
            self.disk.push(transfer.disk);
            self.offset_bytes.push(Some(transfer.offset));
            self.size_bytes.push(Some(transfer.size));
            self.irp.push(transfer.irp);
            self.file_object.push(Some(transfer.file_object));
            self.thread_id.push(transfer.issuing_thread_id);
            (transfer.irp_flags, transfer.response_time)
        };
        // The response is in ticks of the performance counter, which is the session's clock or
        // has a rate that the session does not say.
        let clock = event.clock();
        let response = response
            .filter(|_| clock.kind() == ClockKind::Qpc)
            .and_then(|ticks| i64::try_from(ticks).ok())
            .map(|ticks| clock.ticks_to_ns(ticks));
        let time = event.time_ns();
        self.time_ns.push(time);
        self.init_ns
            .push(response.map(|response| time.saturating_sub(response)));
        self.duration_ns.push(response);
        self.response_ns.push(response);
        self.cpu.push(event.cpu());
        self.kind.0.push(kind);
        self.priority.push((flags >> 17 & 7) as u8);
        self.irp_flags.push(flags);
        Some(())
    }
}

/// The starts of requests.
pub(crate) type DiskStarts = Timed<Start>;

/// The start of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    cpu: u16,
    irp: u64,
    thread_id: Option<u32>,
}

impl DiskStarts {
    /// Adds the start of a request; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let start = DiskStart::read(event.payload(), event.version()?, event.pointer_size())?;
        let logging = event.thread_id().filter(|id| *id != u32::MAX);
        let start = Start {
            cpu: event.cpu(),
            irp: start.irp,
            thread_id: start.issuing_thread_id.or(logging),
        };
        self.0.push((event.time_ns(), start));
        Some(())
    }
}

/// What requests need from the slice before.
#[derive(Debug, Default)]
pub(crate) struct DiskState {
    threads: ThreadFinder,
    /// Starts of this slice, and how many of them are taken.
    pub(crate) starts: DiskStarts,
    /// Requests under way and when they started, by packet.
    open: FxHashMap<u64, (i64, Start)>,
    /// When each disk completed a request last.
    completed_ns: FxHashMap<u32, i64>,
}

impl Join for DiskIo {
    type State = DiskState;

    /// Packets are reused, so a completion takes the latest start not yet taken.
    fn join(&mut self, state: &mut DiskState, world: &World<'_>) {
        let starts = std::mem::take(&mut state.starts.0);
        let mut starts = starts.into_iter().peekable();
        for row in 0..self.len() {
            let time_ns = self.time_ns[row];
            while let Some(start) = starts.next_if(|(start_ns, _)| *start_ns <= time_ns) {
                state.open.insert(start.1.irp, start);
            }
            let irp = self.irp.get(row);
            let start = irp.and_then(|irp| state.open.remove(&irp));
            if let Some((start_ns, start)) = start {
                self.init_ns.set(row, Some(start_ns));
                self.duration_ns
                    .set(row, Some(time_ns.saturating_sub(start_ns)));
                let thread = self.thread_id.get(row).or(start.thread_id);
                self.thread_id.set(row, thread);
            }
            let before = state.completed_ns.insert(self.disk[row], time_ns);
            let init_ns = self.init_ns.get(row);
            let service =
                init_ns.map(|init| time_ns.saturating_sub(init.max(before.unwrap_or(init))));
            self.service_ns.push(service);
            let queued = self.duration_ns.get(row).zip(service);
            self.queue_ns
                .push(queued.map(|(all, service)| all.saturating_sub(service)));
            let key = self.file_object.get(row).filter(|key| *key != 0);
            let path = key.and_then(|key| world.files.path(key, time_ns));
            self.path.push(path);
            let stack = start.zip(self.thread_id.get(row));
            self.stack_id
                .push(stack.and_then(|((start_ns, start), thread)| {
                    world.stacks.find(start_ns, thread, start.cpu)
                }));
        }
        // Requests that complete in a later slice.
        state.open.extend(starts.map(|start| (start.1.irp, start)));
        (self.thread_row, self.process_id, self.process_row) =
            state.threads.whose(world, &self.thread_id, &self.time_ns);
    }
}
