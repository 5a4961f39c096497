//! `disk_io`: requests to disks.

pub(crate) mod block;

use rustc_hash::FxHashMap;

use self::block::{BlockEvent, Requests};
use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per completed request to a disk.
    DiskIo, DiskIoView = "disk_io" sorted by time_ns
        title "Disk Usage"
        record "disk requests (xperf -on DISK_IO+DISK_IO_INIT, WPR keywords DiskIO and DiskIOInit)"
        lasts init_ns to time_ns
    {
        /// Time at which the request was completed.
        time_ns: Vec<i64> = "header time",
        /// Start of the request. This is the time of the init event with the same kind and the same request packet. If
        /// there is no such event, or if the event contradicts `response_ns`, this is the completion time minus
        /// `response_ns`. On Linux, this is the time of `block_bio_queue`, or of `block_rq_issue` if `block_bio_queue`
        /// was not recorded.
        init_ns: Nullable<i64> = "ReadInit, WriteInit, FlushInit: header time, by kind and Irp"
            wpa "Init Time (s)",
        /// Time that the disk worked on the request. This time begins at the start of the request or at the previous
        /// completion on the same disk, whichever is later. On Linux, this time begins when the request was passed to
        /// the disk's driver.
        service_ns: Nullable<i64> = "time_ns - max(init_ns, the disk's previous completion)"
            wpa "Disk Service Time",
        /// Time that the request waited in the disk's queue.
        queue_ns: Nullable<i64> = "duration_ns - service_ns",
        /// Time from the start to the completion of the request.
        duration_ns: Nullable<i64> = "time_ns - init_ns" wpa "IO Time",
        /// Duration of the request, measured by the kernel. Unknown if it is longer than the trace, because
        /// such a duration is damaged.
        response_ns: Nullable<i64> = "HighResResponseTime",
        /// CPU that logged the completion.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// Kind of request: `read`, `write`, `flush`, or, on Linux, `discard`. Requests to optical disks have
        /// the same kinds.
        kind: Names<DiskIoKind> = "DiskIo Read, Write, FlushBuffers, OpticalRead, OpticalWrite, OpticalFlush"
            wpa "IO Type",
        /// Number of the disk. On Linux, this is the major number times 1,048,576, plus the minor number.
        disk: Vec<u32> = "DiskNumber" wpa "Disk",
        /// Offset on the disk. Unknown for a flush.
        offset_bytes: Nullable<u64> = "ByteOffset",
        /// Number of bytes that were read or written. Unknown for a flush.
        size_bytes: Nullable<u32> = "TransferSize" wpa "Size",
        /// I/O priority: 0 not set, 1 very low, 2 low, 3 normal, 4 high, 5 critical. Unknown on Linux.
        priority: Nullable<u8> = "IrpFlags bits 17-19" wpa "Priority",
        /// Flags of the request packet (IRP). Unknown on Linux.
        irp_flags: Nullable<u32> = "IrpFlags",
        /// Address of the request packet (IRP). Present since version 2 (Windows Vista).
        irp: Nullable<u64> = "Irp",
        /// Key of the file. Unknown for a flush.
        file_object: Nullable<u64> = "FileObject",
        /// Thread that made the request. Since version 3 (Windows 8), the completion event contains the
        /// thread id. In earlier versions, the init event contains it. On Linux, this is the thread that
        /// queued the first part of the request.
        thread_id: Nullable<u32> = "IssuingThreadId; init event: header thread" wpa "Thread ID",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread; 0 for idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Path of the file. It has a drive letter if the trace maps the volume to a drive letter.
        path: Text = "FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileObject"
            wpa "Path Name",
        /// Stack of the thread that made the request.
        stack_id: Nullable<u32> = "the stack of the init event" wpa "Init Stack",
    }
}

/// Kind of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskIoKind {
    /// Reads from the disk.
    Read,
    /// Writes to the disk.
    Write,
    /// Writes the disk's cache.
    Flush,
    /// Tells the disk which blocks are unused.
    Discard,
}

impl Named for DiskIoKind {
    const NAMES: &'static [&'static str] = &["read", "write", "flush", "discard"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Completions of requests, and starts of requests.
#[derive(Debug, Default)]
pub struct DiskEvents {
    /// Completed requests.
    pub completions: DiskIo,
    /// Starts of requests.
    pub starts: TimedValues<RequestStart>,
    /// Events of Linux.
    pub block: TimedValues<BlockEvent>,
}

/// Start of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart {
    /// CPU that logged the event.
    pub cpu: u16,
    /// Kind of the event.
    pub kind: DiskIoKind,
    /// Request packet.
    pub irp: u64,
    /// Id of the thread.
    pub thread_id: Option<u32>,
}

impl RequestStart {
    fn key(&self) -> (DiskIoKind, u64) {
        (self.kind, self.irp)
    }
}

/// Returns true if the duration since a start differs from the duration that the kernel measured. In this
/// case, the start belongs to another request. A difference of a tenth or of a millisecond is accepted,
/// whichever is larger.
fn contradicts(duration_ns: i64, response_ns: i64) -> bool {
    duration_ns.abs_diff(response_ns) > (response_ns.unsigned_abs() / 10).max(1_000_000)
}

impl Rows for DiskEvents {
    fn sort(&mut self) {
        self.completions.sort();
        self.starts.sort();
        self.block.sort();
    }

    fn merge(parts: Vec<Self>) -> Self {
        let (mut completions, mut starts, mut block) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            completions.push(part.completions);
            starts.push(part.starts);
            block.push(part.block);
        }
        DiskEvents {
            completions: Rows::merge(completions),
            starts: Rows::merge(starts),
            block: Rows::merge(block),
        }
    }

    fn reserve(&mut self, rows: usize) {
        self.completions.reserve(rows);
    }

    fn rows(&self) -> usize {
        let rows = self.completions.rows().max(self.starts.rows());
        rows.max(self.block.rows())
    }

    fn split_off(&mut self, time_ns: i64) -> Self {
        DiskEvents {
            completions: self.completions.split_off(time_ns),
            starts: self.starts.split_off(time_ns),
            block: self.block.split_off(time_ns),
        }
    }
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct DiskState {
    threads: ThreadFinder,
    /// Time and start of each request that has not completed yet, by kind and request packet.
    open: FxHashMap<(DiskIoKind, u64), (i64, RequestStart)>,
    /// Time of each disk's last completion.
    completed_ns: FxHashMap<u32, i64>,
    /// Requests of Linux.
    requests: Requests,
}

impl Register for DiskIo {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
        Reader::FileNames,
    ];
}

impl EventTable for DiskIo {
    type Raw = DiskEvents;
    type State = DiskState;

    /// Makes the rows of the requests that complete in the slice. Request packets are reused. So a completion
    /// belongs to the latest start that has the same kind and packet and no completion yet.
    fn join(raw: &mut DiskEvents, state: &mut DiskState, trackers: &Trackers<'_>) -> DiskIo {
        let DiskEvents {
            completions: mut rows,
            starts,
            block,
        } = std::mem::take(raw);
        if block.rows() > 0 {
            return DiskIo::join_block(block, state, trackers);
        }
        let mut starts = starts.0.into_iter().peekable();
        for row in 0..rows.len() {
            let time_ns = rows.time_ns[row];
            rows.refuse_long_response(row, trackers.length_ns);
            while let Some(start) = starts.next_if(|(start_ns, _)| *start_ns <= time_ns) {
                state.open.insert(start.1.key(), start);
            }
            let key = rows.irp.get(row).map(|irp| (rows.kind.0[row], irp));
            let start = key.and_then(|key| state.open.remove(&key));
            let response_ns = rows.response_ns.get(row);
            let start = start.filter(|(start_ns, _)| {
                let duration_ns = time_ns.saturating_sub(*start_ns);
                response_ns.is_none_or(|response_ns| !contradicts(duration_ns, response_ns))
            });
            if let Some((start_ns, start)) = start {
                rows.init_ns.set(row, Some(start_ns));
                rows.duration_ns
                    .set(row, Some(time_ns.saturating_sub(start_ns)));
                let thread = rows.thread_id.get(row).or(start.thread_id);
                rows.thread_id.set(row, thread);
            }
            let before = state.completed_ns.insert(rows.disk[row], time_ns);
            let init_ns = rows.init_ns.get(row);
            let service =
                init_ns.map(|init| time_ns.saturating_sub(init.max(before.unwrap_or(init))));
            rows.service_ns.push(service);
            let queued = rows.duration_ns.get(row).zip(service);
            rows.queue_ns
                .push(queued.map(|(all, service)| all.saturating_sub(service)));
            let key = rows.file_object.get(row).filter(|key| *key != 0);
            let path = key.and_then(|key| trackers.files.path(key, time_ns));
            rows.path.push(path);
            let stack = start.zip(rows.thread_id.get(row));
            rows.stack_id
                .push(stack.and_then(|((start_ns, start), thread)| {
                    trackers.stacks.find(start_ns, thread, start.cpu)
                }));
        }
        // The remaining starts belong to requests that complete in a later slice.
        state
            .open
            .extend(starts.map(|start| (start.1.key(), start)));
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}

impl DiskIo {
    /// Makes the rows of the requests of Linux that complete in the slice.
    fn join_block(
        events: TimedValues<BlockEvent>,
        state: &mut DiskState,
        trackers: &Trackers<'_>,
    ) -> DiskIo {
        let mut rows = DiskIo::default();
        for (time_ns, event) in events.0 {
            let Some(request) = state.requests.take(time_ns, event) else {
                continue;
            };
            rows.push_request(&request);
            rows.path.push(None);
            let stack = request.queued.and_then(|(queued_ns, part)| {
                trackers.stacks.find(queued_ns, part.thread_id?, part.cpu)
            });
            rows.stack_id.push(stack);
        }
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }

    /// Sets the response time of a row to unknown if it is longer than the trace. Such a response time is
    /// damaged.
    fn refuse_long_response(&mut self, row: usize, length_ns: Option<i64>) {
        let longest_ns = length_ns.unwrap_or(i64::MAX);
        if self.response_ns.get(row) > Some(longest_ns) {
            self.init_ns.set(row, None);
            self.duration_ns.set(row, None);
            self.response_ns.set(row, None);
        }
    }
}
