//! `marks`: text that programs and people wrote into the trace.

use etl::{Event, Guid};
use events::Ansi;
use events::ids::hook;

use crate::column::{Named, Names, Nullable, Text};
use crate::providers::{MULTI_MAIN, MULTI_WORKER, fields, logged_by, text};
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
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
    const READS: Reads = Reads {
        hooks: &[hook::MARK..=hook::MARK],
        providers: &[
            (MULTI_MAIN, &[102..=102, 104..=107, 114..=114, 116..=119]),
            (MULTI_WORKER, &[102..=102]),
        ],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for Marks {
    type Raw = Marks;
    type State = ThreadFinder;

    fn push(raw: &mut Marks, incoming: &Incoming<'_, '_>) -> Option<()> {
        match incoming.hook {
            Some(_) => raw.push_kernel(incoming.event),
            None => raw.push_uiforetw(incoming.event)?,
        }
        Some(())
    }

    fn join(raw: &mut Marks, threads: &mut ThreadFinder, trackers: &Trackers<'_>) -> Marks {
        let mut rows = std::mem::take(raw);
        let (ids, processes) = (&rows.thread_id, &rows.process_id);
        (rows.thread_row, rows.process_row) =
            threads.find_rows(trackers, ids, processes, &rows.time_ns);
        rows
    }
}

impl Marks {
    /// Adds a mark of the kernel. The whole payload is text, so the mark is always readable.
    fn push_kernel(&mut self, event: &Event<'_>) {
        let payload = event.payload();
        let end = payload.iter().position(|byte| *byte == 0);
        let label = Ansi(&payload[..end.unwrap_or(payload.len())]).to_str();
        self.push_row(event, MarkSource::Kernel, Some(&label), None);
    }

    /// Adds a mark of UIforETW. Returns `None` if the payload is unreadable.
    fn push_uiforetw(&mut self, event: &Event<'_>) -> Option<()> {
        let is_worker = event.guid() == Some(MULTI_WORKER);
        let provider: Guid = if is_worker { MULTI_WORKER } else { MULTI_MAIN };
        let fields = fields(provider, event)?;
        let data: Vec<String> = fields
            .values
            .iter()
            .filter(|(name, _)| name.starts_with("Data"))
            .map(|(_, value)| value.to_string())
            .collect();
        let data = (!data.is_empty()).then(|| data.join(", "));
        let label = text(&fields, "Description");
        self.push_row(event, MarkSource::Uiforetw, label, data.as_deref());
        Some(())
    }

    fn push_row(
        &mut self,
        event: &Event<'_>,
        source: MarkSource,
        text: Option<&str>,
        data: Option<&str>,
    ) {
        let (thread_id, process_id) = logged_by(event);
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.source.0.push(source);
        self.text.push(text);
        self.data.push(data);
        self.thread_id.push(thread_id);
        self.process_id.push(process_id);
    }
}
