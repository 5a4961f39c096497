//! `laglab marks`: what programs and people wrote into the trace.

use tables::{MarksView, Table};

use super::process_filter::ProcessFilter;
use super::recorded::{Recorded, batches};
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer};
use crate::cli::Failure;

/// What the report rests on.
const MARKS: Recorded = Recorded {
    table: Table::Marks,
    what: "marks",
    xperf: "PROC_THREAD` and write them with `xperf -m TEXT",
    wpr: "ProcessThread (and `wpr -marker TEXT`)",
};

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
#[derive(clap::Args, Debug)]
pub(crate) struct Marks {
    #[command(flatten)]
    processes: ProcessFilter,
}

impl Report for Marks {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Marks]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        const COLUMNS: [&str; 7] = [
            "data",
            "process_id",
            "process_row",
            "source",
            "text",
            "thread_id",
            "time_ns",
        ];
        let table = MARKS.of(trace)?;
        let wanted = self.processes.wanted(&trace.names);
        out.table(&LAYOUT)?;
        for batch in batches(&table, trace.range.clone(), &COLUMNS) {
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
