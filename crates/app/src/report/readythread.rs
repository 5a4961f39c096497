//! `laglab readythread`: who made which thread ready, when, and what it had waited for.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, StoredTable, Table};

use super::process_filter::ProcessFilter;
use super::recorded::{Recorded, batches};
use super::scheduling_names::{adjust_reason, wait_reason};
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer};
use crate::cli::Failure;
use crate::watch;

/// What the report rests on.
const READY_THREADS: Recorded = Recorded {
    table: Table::ReadyThreads,
    what: "events of threads made ready",
    xperf: "DISPATCHER+CSWITCH+PROC_THREAD+LOADER",
    wpr: "ReadyThread, CSwitch, ProcessThread and Loader",
};

/// xperf's columns, in its order; then what the thread had waited for.
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
#[derive(clap::Args, Debug)]
pub(crate) struct ReadyThread {
    /// Only the thread with this id being made ready
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl Report for ReadyThread {
    fn tables(&self) -> Vec<Table> {
        vec![Table::ReadyThreads, Table::CpuRuns]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
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
        let table = READY_THREADS.of(trace)?;
        let wanted = self.processes.wanted(&trace.names);
        let mut switched_out = SwitchedOut::new(trace.tables.table(Table::CpuRuns)?);
        out.table(&LAYOUT)?;
        for batch in batches(&table, trace.range.clone(), &COLUMNS) {
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
                    adjust_reason(Some(view.adjust_reason[row])),
                    Value::Number(view.adjust_increment[row].into()),
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

/// A wait that began when a thread was switched out.
#[derive(Clone, Copy)]
struct Wait {
    since_ns: i64,
    reason: Option<u8>,
}

/// Why each thread was switched out last, followed through time: runs are sorted by their ends.
struct SwitchedOut {
    runs: StoredTable,
    /// The chunk that is read, and its next row.
    chunk: usize,
    batch: Option<RecordBatch>,
    row: usize,
    waits: FxHashMap<u32, Option<Wait>>,
}

impl SwitchedOut {
    fn new(runs: StoredTable) -> SwitchedOut {
        SwitchedOut {
            runs,
            chunk: 0,
            batch: None,
            row: 0,
            waits: FxHashMap::default(),
        }
    }

    /// What the thread waits for at a moment, which must not be before the one asked for last. A
    /// thread that is ready anyway, or that has not been seen, waits for nothing that is known.
    fn wait(&mut self, thread_id: u32, time_ns: i64) -> Result<Option<Wait>, Failure> {
        while self.advance(time_ns)? {}
        Ok(self.waits.get(&thread_id).copied().flatten())
    }

    /// Takes in the runs of one chunk that ended by then; whether the next chunk is to follow.
    fn advance(&mut self, time_ns: i64) -> Result<bool, Failure> {
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
            watch::check()?;
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
