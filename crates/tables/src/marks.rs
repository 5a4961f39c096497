//! `marks`: what programs and people wrote into the trace.

use etl::{Event, Guid};
use events::Ansi;

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::provider_events::{MULTI_MAIN, MULTI_WORKER, fields, logged_by, text};
use crate::schema::table;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per mark: text that says where something begins, ends or is worth a look.
    Marks, MarksView = "marks" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Who knows such marks: `kernel` (of `xperf -m`, `wpr -marker`, `TraceSetInformation`) or
        /// `uiforetw`.
        source: Names<MarkSource> = "PerfInfo Mark; Multi-Main and Multi-Worker Mark",
        /// The text.
        text: Text = "Mark: the payload; Multi-Main and Multi-Worker: Description" wpa "Label",
        /// Numbers that go with it, separated by commas.
        data: Text = "Multi-Main: Data1, Data2, …",
        /// The thread that logged it.
        thread_id: Nullable<u32> = "header thread",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// The process that logged it.
        process_id: Nullable<u32> = "header process",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
    }
}

/// Hook of the kernel's mark.
pub(crate) const MARK: u16 = 0x0F22;

/// Whose kind of mark it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkSource {
    /// The kernel's.
    Kernel,
    /// UIforETW's.
    Uiforetw,
}

impl Named for MarkSource {
    const NAMES: &'static [&'static str] = &["kernel", "uiforetw"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl Marks {
    /// Adds a row of the kernel's mark; always succeeds, as the whole payload is text.
    pub(crate) fn push_kernel(&mut self, event: &Event<'_>) -> Option<()> {
        let payload = event.payload();
        let end = payload.iter().position(|byte| *byte == 0);
        let label = Ansi(&payload[..end.unwrap_or(payload.len())]).to_str();
        self.push_row(event, MarkSource::Kernel, Some(&label), None);
        Some(())
    }

    /// Adds a row of UIforETW's mark; `None` if the payload is unreadable.
    pub(crate) fn push_uiforetw(&mut self, event: &Event<'_>) -> Option<()> {
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

impl Join for Marks {
    type State = ThreadFinder;

    fn join(&mut self, threads: &mut ThreadFinder, world: &World<'_>) {
        let (ids, processes) = (&self.thread_id, &self.process_id);
        (self.thread_row, self.process_row) = threads.rows(world, ids, processes, &self.time_ns);
    }
}
