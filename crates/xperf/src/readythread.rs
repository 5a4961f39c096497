//! `laglab readythread`: wakes of threads. Each row has the thread that caused the wake and the wait that ended.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use session::TraceTables;
use tables::{CpuRunsView, ReadyThreadsView, StoredTable, Table};

use crate::process_filter::ProcessFilter;
use crate::scheduling_names::{adjust_reason, wait_reason};
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer};

/// Columns of xperf in xperf's order, followed by columns of the wait that ended.
static LAYOUT: Layout = Layout {
    name: "readythread",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "time_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("  ThreadID", "thread_id"),
        Column::process("Rdy Process Name ( PID)", "readying_"),
        Column::new("   Rdy TID", "readying_thread_id"),
        Column::new("AdjustReason", "adjust_reason"),
        Column::new("AdjustIncrement", "adjust_increment"),
        Column::new("InDPC", "by_dpc"),
        Column::new("CPU", "cpu"),
        Column::new("     Wait Reason", "wait_reason"),
        Column::new("    Waited", "waited_ns"),
        Column::data_only("kernel_stack_not_resident"),
        Column::data_only("process_out_of_memory"),
        Column::data_only("direct_switch_attempt"),
    ],
};

/// Options of `laglab readythread`.
#[derive(Clone, Debug, Default)]
pub struct ReadyThread {
    /// Ids of the threads whose wakes are shown. If empty, wakes of all threads are shown.
    pub thread: Vec<u32>,
    /// Filter by process.
    pub processes: ProcessFilter,
}

impl Report for ReadyThread {
    fn tables(&self) -> Vec<Table> {
        vec![Table::ReadyThreads, Table::CpuRuns, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        const COLUMNS: [&str; 14] = [
            "adjust_increment",
            "adjust_reason",
            "by_dpc",
            "cpu",
            "direct_switch_attempt",
            "kernel_stack_not_resident",
            "process_id",
            "process_out_of_memory",
            "process_row",
            "readying_process_id",
            "readying_process_row",
            "readying_thread_id",
            "thread_id",
            "time_ns",
        ];
        let table = trace.tables.recorded(Table::ReadyThreads)?;
        let wanted = self.processes.wanted(&trace.names);
        let mut switched_out = SwitchedOut::new(&trace.tables)?;
        out.table(&LAYOUT)?;
        for batch in trace.tables.batches(&table, trace.range.clone(), &COLUMNS) {
            let batch = batch?;
            let view = ReadyThreadsView::new(&batch)?;
            for row in 0..view.len() {
                let (time, thread) = (view.time_ns[row], view.thread_id[row]);
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !trace.range.contains(&time)
                    || !wanted.has(process.0, process.1)
                    || !(self.thread.is_empty() || self.thread.contains(&thread))
                {
                    continue;
                }
                let wait = switched_out.wait(thread, time)?;
                let readying = (
                    view.readying_process_row.get(row),
                    view.readying_process_id.get(row),
                );
                let values = [
                    Value::Time(time),
                    Value::Process(trace.names.process(process.0, process.1)),
                    Value::Number(thread.into()),
                    Value::Process(trace.names.process(readying.0, readying.1)),
                    Value::number(view.readying_thread_id.get(row)),
                    adjust_reason(view.adjust_reason.get(row)),
                    Value::number(view.adjust_increment.get(row)),
                    Value::flag(view.by_dpc.get(row)),
                    Value::Number(view.cpu[row].into()),
                    wait_reason(wait.and_then(|wait| wait.reason)),
                    Value::time(wait.map(|wait| time - wait.since_ns)),
                    Value::flag(view.kernel_stack_not_resident.get(row)),
                    Value::flag(view.process_out_of_memory.get(row)),
                    Value::flag(view.direct_switch_attempt.get(row)),
                ];
                out.row("ReadyThread", &values)?;
            }
        }
        Ok(())
    }
}

/// Wait that began when a thread was switched out.
#[derive(Clone, Copy)]
struct Wait {
    since_ns: i64,
    reason: Option<u8>,
}

/// Reader that finds the last wait of a thread at a time. Each query must have a later time than the query before, or
/// the same time, because the table of runs is read once, in the order of the runs' ends.
struct SwitchedOut<'t> {
    tables: &'t TraceTables,
    runs: StoredTable,
    /// Index of the current chunk of `runs`. `batch` contains the rows of this chunk, and `row` is the index
    /// of the next row.
    chunk: usize,
    batch: Option<RecordBatch>,
    row: usize,
    waits: FxHashMap<u32, Option<Wait>>,
}

impl<'t> SwitchedOut<'t> {
    fn new(tables: &'t TraceTables) -> Result<SwitchedOut<'t>, Error> {
        Ok(SwitchedOut {
            tables,
            runs: tables.table(Table::CpuRuns)?,
            chunk: 0,
            batch: None,
            row: 0,
            waits: FxHashMap::default(),
        })
    }

    /// Returns the wait of a thread that is in progress at `time_ns`. Returns `None` if the thread does not wait, or
    /// if no earlier run of the thread ended. `time_ns` must not be earlier than in the previous call.
    fn wait(&mut self, thread_id: u32, time_ns: i64) -> Result<Option<Wait>, Error> {
        while self.advance(time_ns)? {}
        Ok(self.waits.get(&thread_id).copied().flatten())
    }

    /// Processes the runs of the current chunk that ended at `time_ns` or earlier. Returns true if all runs of the
    /// chunk are processed, so the next chunk may have further runs to process.
    fn advance(&mut self, time_ns: i64) -> Result<bool, Error> {
        const WAITING: u8 = 5;
        const COLUMNS: [&str; 5] = [
            "end_ns",
            "thread_id",
            "ends_at_switch",
            "state_out",
            "wait_reason_out",
        ];
        let Some(chunk) = self.runs.chunks().get(self.chunk) else {
            return Ok(false);
        };
        if chunk.rows > 0 && self.row == 0 && chunk.first > time_ns {
            return Ok(false);
        }
        if self.batch.is_none() {
            self.tables.check()?;
            self.batch = Some(self.runs.read(self.chunk, &COLUMNS)?);
        }
        let Some(batch) = &self.batch else {
            return Ok(false);
        };
        let view = CpuRunsView::new(batch)?;
        while self.row < view.len() && view.end_ns[self.row] <= time_ns {
            let row = self.row;
            self.row += 1;
            if view.ends_at_switch.get(row) == Some(true) {
                let wait = (view.state_out.get(row) == Some(WAITING)).then(|| Wait {
                    since_ns: view.end_ns[row],
                    reason: view.wait_reason_out.get(row),
                });
                self.waits.insert(view.thread_id[row], wait);
            }
        }
        if self.row < view.len() {
            return Ok(false);
        }
        (self.chunk, self.row, self.batch) = (self.chunk + 1, 0, None);
        Ok(true)
    }
}
