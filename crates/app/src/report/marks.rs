//! `laglab marks`: what programs and people wrote into the trace.

use tables::{MarksView, Table};

use super::process_filter::ProcessFilter;
use super::recorded::Recorded;
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer};
use crate::cli::Failure;
use crate::watch;

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
        let table = MARKS.of(trace)?;
        let wanted = self.processes.wanted(&trace.names);
        out.table(&LAYOUT)?;
        for chunk in table.chunks_within(trace.range.clone()) {
            watch::check()?;
            let batch = table.read_all(chunk)?;
            let view = MarksView::new(&batch)?;
            for row in 0..view.len() {
                let time = view.time_ns[row];
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !trace.range.contains(&time) || !wanted.has(process.0, process.1) {
                    continue;
                }
                let values = [
                    Value::Time(time),
                    view.source.get(row).map_or(Value::Unknown, Value::Text),
                    Value::Process(trace.names.process(process.0, process.1)),
                    Value::number(view.thread_id.get(row)),
                    view.data.get(row).map_or(Value::Unknown, Value::Quoted),
                    view.text.get(row).map_or(Value::Unknown, Value::Quoted),
                ];
                out.row("Mark", &values)?;
            }
        }
        Ok(())
    }
}
