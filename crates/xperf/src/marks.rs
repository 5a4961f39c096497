//! `laglab marks`: marks that programs and users wrote into the trace.

use tables::{MarksView, Table};

use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer};

static LAYOUT: Layout = Layout {
    name: "marks",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "time_ns"),
        Column::new("  Source", "source"),
        Column::process("Process Name ( PID)", ""),
        Column::new("  ThreadID", "thread_id"),
        Column::new("Data", "data"),
        Column::new("Text", "text"),
    ],
};

/// Options of `laglab marks`.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Filter by process.
    pub processes: ProcessFilter,
}

impl Report for Marks {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Marks]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        const COLUMNS: [&str; 7] = [
            "data",
            "process_id",
            "process_row",
            "source",
            "text",
            "thread_id",
            "time_ns",
        ];
        let table = trace.tables.recorded(Table::Marks)?;
        let wanted = self.processes.wanted(&trace.names);
        out.table(&LAYOUT)?;
        for batch in trace.tables.batches(&table, trace.range.clone(), &COLUMNS) {
            let batch = batch?;
            let view = MarksView::new(&batch)?;
            for row in 0..view.len() {
                let time = view.time_ns[row];
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !trace.range.contains(&time) || !wanted.has(process.0, process.1) {
                    continue;
                }
                let values = [
                    Value::Time(time),
                    Value::text(view.source.get(row)),
                    Value::Process(trace.names.process(process.0, process.1)),
                    Value::number(view.thread_id.get(row)),
                    Value::quoted(view.data.get(row)),
                    Value::quoted(view.text.get(row)),
                ];
                out.row("Mark", &values)?;
            }
        }
        Ok(())
    }
}
