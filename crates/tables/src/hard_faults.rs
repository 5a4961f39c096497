//! `hard_faults`: pages that had to be read from a disk.

use etl::Event;
use events::kernel::HardFault;

use crate::column::{Nullable, Text};
use crate::schema::table;

table! {
    /// One row per hard page fault: a thread touched memory that had to be read from a file, and
    /// waited for it. Logged when the page was there.
    HardFaults, HardFaultsView = "hard_faults" sorted by time_ns {
        /// When the page was there.
        time_ns: Vec<i64> = "HardFault: header time",
        /// When the fault began; unknown if the event's time makes no sense.
        start_ns: Nullable<i64> = "HardFault: InitialTime",
        /// From fault to page.
        duration_ns: Nullable<i64> = "header time - InitialTime",
        /// The CPU that logged it.
        cpu: Vec<u16> = "HardFault: CPU of the buffer",
        /// The thread that waited.
        thread_id: Vec<u32> = "HardFault: TThreadId",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Its process; 0 of idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// The address that was touched.
        address: Vec<u64> = "HardFault: VirtualAddress",
        /// Key of the file.
        file_object: Vec<u64> = "HardFault: FileObject",
        /// The file, with a drive letter where the trace maps its volume to one.
        path: Text = "FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileObject",
        /// Where in the file.
        offset_bytes: Vec<u64> = "HardFault: ReadOffset",
        /// How much was read.
        size_bytes: Vec<u32> = "HardFault: ByteCount",
    }
}

impl HardFaults {
    /// Adds a row; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let fault = HardFault::read(event.payload(), event.version()?, event.pointer_size())?;
        let time = event.time_ns();
        let start = crate::time::since(event, fault.initial_time);
        self.time_ns.push(time);
        self.start_ns.push(start);
        self.duration_ns
            .push(start.map(|start| time.saturating_sub(start)));
        self.cpu.push(event.cpu());
        self.thread_id.push(fault.thread_id);
        self.address.push(fault.virtual_address);
        self.file_object.push(fault.file_object);
        self.offset_bytes.push(fault.read_offset);
        self.size_bytes.push(fault.size);
        Some(())
    }
}
