//! `hard_faults`: accesses to memory pages that had to be read from a disk.

use rustc_hash::FxHashMap;

use crate::column::{Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per hard page fault. A thread accessed memory that had to be read from a file, and the thread
    /// waited for this memory. The event is logged when the page was read.
    HardFaults, HardFaultsView = "hard_faults" sorted by time_ns
        title "Hard Faults"
        record "hard faults (xperf -on HARD_FAULTS, WPR keyword HardFaults)"
        lasts start_ns to time_ns
    {
        /// End of the fault. At this time, the page was read.
        time_ns: Vec<i64> = "HardFault: header time",
        /// Start of the fault. Unknown if the start time in the event is later than the end. On Linux, this is the
        /// last page fault of the thread before `time_ns`.
        start_ns: Nullable<i64> = "HardFault: InitialTime",
        /// Duration of the fault.
        duration_ns: Nullable<i64> = "header time - InitialTime",
        /// CPU that logged the fault. Unknown if a recording of Linux has faults without CPUs.
        cpu: Nullable<u16> = "HardFault: CPU of the buffer",
        /// Thread that waited for the page.
        thread_id: Vec<u32> = "HardFault: TThreadId",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread; 0 for idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Address that the thread accessed.
        address: Vec<u64> = "HardFault: VirtualAddress",
        /// Key of the file. Unknown on Linux.
        file_object: Nullable<u64> = "HardFault: FileObject",
        /// Path of the file. It has a drive letter if the trace maps the volume to a drive letter.
        path: Text = "FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileObject",
        /// Offset of the page in the file. Unknown on Linux.
        offset_bytes: Nullable<u64> = "HardFault: ReadOffset",
        /// Number of bytes read. Unknown on Linux.
        size_bytes: Nullable<u32> = "HardFault: ByteCount",
    }
}

/// Hard faults, and page faults of Linux that may be the starts of hard faults.
#[derive(Debug, Default)]
pub struct FaultEvents {
    /// Hard faults.
    pub rows: HardFaults,
    /// Thread and address of each page fault.
    pub faults: TimedValues<(u32, u64)>,
}

impl FaultEvents {
    /// Adds a page fault of Linux, which may be hard.
    pub fn begin(&mut self, time_ns: i64, thread_id: u32, address: u64) {
        self.faults.0.push((time_ns, (thread_id, address)));
    }

    /// Adds a hard fault of Linux, whose page was read at `time_ns`.
    pub fn end(&mut self, time_ns: i64, cpu: Option<u16>, thread_id: u32, address: u64) {
        let rows = &mut self.rows;
        rows.time_ns.push(time_ns);
        rows.start_ns.push(None);
        rows.duration_ns.push(None);
        rows.cpu.push(cpu);
        rows.thread_id.push(thread_id);
        rows.address.push(address);
        rows.file_object.push(None);
        rows.offset_bytes.push(None);
        rows.size_bytes.push(None);
    }
}

impl Rows for FaultEvents {
    fn sort(&mut self) {
        self.rows.sort();
        self.faults.sort();
    }

    fn merge(parts: Vec<Self>) -> Self {
        let parts = parts.into_iter();
        let (rows, faults) = parts.map(|part| (part.rows, part.faults)).unzip();
        FaultEvents {
            rows: Rows::merge(rows),
            faults: Rows::merge(faults),
        }
    }

    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    fn rows(&self) -> usize {
        self.rows.rows().max(self.faults.rows())
    }

    fn split_off(&mut self, time_ns: i64) -> Self {
        FaultEvents {
            rows: self.rows.split_off(time_ns),
            faults: self.faults.split_off(time_ns),
        }
    }
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct FaultState {
    threads: ThreadFinder,
    /// Time and address of each thread's last page fault.
    last: FxHashMap<u32, (i64, u64)>,
}

/// Number of bytes of the smallest page.
const PAGE: u64 = 4096;

impl Register for HardFaults {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::FileNames,
    ];
}

impl EventTable for HardFaults {
    type Raw = FaultEvents;
    type State = FaultState;

    fn join(raw: &mut FaultEvents, state: &mut FaultState, trackers: &Trackers<'_>) -> HardFaults {
        let FaultEvents { mut rows, faults } = std::mem::take(raw);
        let mut faults = faults.0.into_iter().peekable();
        for row in 0..rows.len() {
            let time_ns = rows.time_ns[row];
            let key = rows.file_object.get(row);
            rows.path
                .push(key.and_then(|key| trackers.files.path(key, time_ns)));
            while let Some((fault_ns, (thread, address))) = faults.next_if(|it| it.0 <= time_ns) {
                state.last.insert(thread, (fault_ns, address));
            }
            // The event of a hard fault has the accessed address, or the first address of its page.
            let is_of_page = |(_, address): &(i64, u64)| address / PAGE == rows.address[row] / PAGE;
            let start = state.last.remove(&rows.thread_id[row]).filter(is_of_page);
            if let Some((start_ns, _)) = start {
                rows.start_ns.set(row, Some(start_ns));
                let duration_ns = time_ns.saturating_sub(start_ns);
                rows.duration_ns.set(row, Some(duration_ns));
            }
        }
        state
            .last
            .extend(faults.map(|(time_ns, (thread, address))| (thread, (time_ns, address))));
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}
