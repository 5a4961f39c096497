//! `laglab focuschange`: the process that has the keyboard focus, over time.

use tables::{FocusView, Table};

use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer};

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
#[derive(Clone, Debug, Default)]
pub struct FocusChange {
    /// Filter by process.
    pub processes: ProcessFilter,
}

impl Report for FocusChange {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Focus]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        const COLUMNS: [&str; 7] = [
            "end_ns",
            "ends_at_event",
            "process_id",
            "process_row",
            "session_id",
            "start_ns",
            "starts_at_event",
        ];
        let table = trace.tables.recorded(Table::Focus)?;
        let wanted = self.processes.wanted(&trace.names);
        out.table(&LAYOUT)?;
        for batch in trace
            .tables
            .batches(&table, i64::MIN..trace.range.end, &COLUMNS)
        {
            let batch = batch?;
            let view = FocusView::new(&batch)?;
            for row in 0..view.len() {
                let (start, end) = (view.start_ns[row], view.end_ns[row]);
                let (process_row, id) = (view.process_row.get(row), view.process_id[row]);
                // A focus that began before the time range and ended within it is shown too.
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
