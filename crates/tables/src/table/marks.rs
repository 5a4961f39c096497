//! `marks`: text that programs and people wrote into the trace.

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per mark. A mark is text that labels a moment, such as the start or end of an operation.
    Marks, MarksView = "marks" sorted by time_ns
        title "Marks"
        record "marks (xperf -m, wpr -marker)"
    {
        /// Time of the mark.
        time_ns: Vec<i64> = "header time",
        /// CPU that logged the mark.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Kind of mark: `kernel` (`xperf -m`, `wpr -marker`, `TraceSetInformation`) or `uiforetw`.
        source: Names<MarkSource> = "PerfInfo Mark; Multi-Main and Multi-Worker Mark",
        /// Text of the mark.
        text: Text = "Mark: the payload; Multi-Main and Multi-Worker: Description" wpa "Label",
        /// Numbers that belong to the mark, separated by commas.
        data: Text = "Multi-Main: Data1, Data2, …",
        /// Thread that logged the mark.
        thread_id: Nullable<u32> = "header thread",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process that logged the mark.
        process_id: Nullable<u32> = "header process",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
    }
}

/// Kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkSource {
    /// Mark of the kernel.
    Kernel,
    /// Mark of UIforETW.
    Uiforetw,
}

impl Named for MarkSource {
    const NAMES: &'static [&'static str] = &["kernel", "uiforetw"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl Register for Marks {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for Marks {
    type Raw = Marks;
    type State = ThreadFinder;

    fn join(raw: &mut Marks, threads: &mut ThreadFinder, trackers: &Trackers<'_>) -> Marks {
        let mut rows = std::mem::take(raw);
        let (ids, processes) = (&rows.thread_id, &rows.process_id);
        (rows.thread_row, rows.process_row) =
            threads.find_rows(trackers, ids, processes, &rows.time_ns);
        rows
    }
}
