//! `laglab focuschange`: which process had the window in focus, from when to when.

use tables::{FocusView, Table};

use super::process_filter::ProcessFilter;
use super::recorded::{Recorded, batches};
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer};
use crate::cli::Failure;

/// What the report rests on.
pub(crate) const FOCUS: Recorded = Recorded {
    table: Table::Focus,
    what: "changes of the window in focus",
    xperf: "PROC_THREAD -start w -on Microsoft-Windows-Win32k:0x22000",
    wpr: "ProcessThread and the provider Microsoft-Windows-Win32k",
};

static LAYOUT: Layout = Layout {
    name: "focuschange",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "start_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("   Session", "session_id"),
        Column::new("      Until", "end_ns"),
        Column::new("  Duration", "duration_ns"),
        Column::data_only("starts_at_event"),
        Column::data_only("ends_at_event"),
    ],
};

/// Options of `laglab focuschange`.
#[derive(clap::Args, Debug)]
pub(crate) struct FocusChange {
    #[command(flatten)]
    processes: ProcessFilter,
}

impl Report for FocusChange {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Focus]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        const COLUMNS: [&str; 7] = [
            "end_ns",
            "ends_at_event",
            "process_id",
            "process_row",
            "session_id",
            "start_ns",
            "starts_at_event",
        ];
        let table = FOCUS.of(trace)?;
        let wanted = self.processes.wanted(&trace.names);
        out.table(&LAYOUT)?;
        for batch in batches(&table, i64::MIN..trace.range.end, &COLUMNS) {
            let batch = batch?;
            let view = FocusView::new(&batch)?;
            for row in 0..view.len() {
                let (start, end) = (view.start_ns[row], view.end_ns[row]);
                let (process_row, id) = (view.process_row.get(row), view.process_id[row]);
                // What had the focus when the range begins counts too.
                let within = start < trace.range.end && end >= trace.range.start;
                if !within || !wanted.has(process_row, Some(id)) {
                    continue;
                }
                let values = [
                    Value::Time(start),
                    Value::Process(trace.names.process(process_row, Some(id))),
                    Value::Number(view.session_id[row].into()),
                    Value::Time(end),
                    Value::Time(end.saturating_sub(start)),
                    Value::flag(view.starts_at_event.get(row)),
                    Value::flag(view.ends_at_event.get(row)),
                ];
                out.row("FocusChange", &values)?;
            }
        }
        Ok(())
    }
}
