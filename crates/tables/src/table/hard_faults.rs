//! `hard_faults`: accesses to memory pages that had to be read from a disk.

use events::ids::hook;
use events::kernel::HardFault;

use crate::column::{Nullable, Text};
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
use crate::schema::table;
use crate::table::Table;
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
        /// Start of the fault. Unknown if the start time in the event is later than the end.
        start_ns: Nullable<i64> = "HardFault: InitialTime",
        /// Duration of the fault.
        duration_ns: Nullable<i64> = "header time - InitialTime",
        /// CPU that logged the fault.
        cpu: Vec<u16> = "HardFault: CPU of the buffer",
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
        /// Key of the file.
        file_object: Vec<u64> = "HardFault: FileObject",
        /// Path of the file. It has a drive letter if the trace maps the volume to a drive letter.
        path: Text = "FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileObject",
        /// Offset of the page in the file.
        offset_bytes: Vec<u64> = "HardFault: ReadOffset",
        /// Number of bytes read.
        size_bytes: Vec<u32> = "HardFault: ByteCount",
    }
}

impl Register for HardFaults {
    const READS: Reads = Reads {
        hooks: &[hook::HARD_FAULT..=hook::HARD_FAULT],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::FileNames,
    ];
}

impl EventTable for HardFaults {
    type Raw = HardFaults;
    type State = ThreadFinder;

    fn push(raw: &mut HardFaults, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let fault = HardFault::read(event.payload(), event.version()?, event.pointer_size())?;
        let time = event.time_ns();
        let start = crate::time::earlier_ns(event, fault.initial_time);
        raw.time_ns.push(time);
        raw.start_ns.push(start);
        raw.duration_ns
            .push(start.map(|start| time.saturating_sub(start)));
        raw.cpu.push(event.cpu());
        raw.thread_id.push(fault.thread_id);
        raw.address.push(fault.virtual_address);
        raw.file_object.push(fault.file_object);
        raw.offset_bytes.push(fault.read_offset);
        raw.size_bytes.push(fault.size);
        Some(())
    }

    fn join(
        raw: &mut HardFaults,
        threads: &mut ThreadFinder,
        trackers: &Trackers<'_>,
    ) -> HardFaults {
        let mut rows = std::mem::take(raw);
        let keys = rows.file_object.iter().zip(&rows.time_ns);
        let paths = keys.map(|(key, time)| trackers.files.path(*key, *time));
        rows.path = paths.collect();
        (rows.thread_row, rows.process_id, rows.process_row) =
            threads.find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}
