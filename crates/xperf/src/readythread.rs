//! `laglab readythread`: wakes of threads. Each row has the thread that caused the wake and the wait that ended.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use session::TraceTables;
use tables::{CpuRunsView, ReadyThreadsView, StoredTable, Table};

use crate::layout::Format::{Plain, Process, Time};
use crate::layout::{Column, EVENT, Layout};
use crate::rows::Times;
use crate::scheduling_names::{adjust_reason, wait_reason};
use crate::{Error, Recording, Report, Writer};

/// Columns of xperf in xperf's order, followed by columns of the wait that ended.
static LAYOUT: Layout<EndedWait> = Layout {
    name: "readythread",
    columns: &[
        Column::new(EVENT, "", Plain).value(|_| "ReadyThread".into()),
        Column::new(" TimeStamp", "time_ns", Time),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  ThreadID", "thread_id", Plain),
        Column::new("Rdy Process Name ( PID)", "readying_", Process),
        Column::new("   Rdy TID", "readying_thread_id", Plain),
        Column::new("AdjustReason", "adjust_reason", Plain).convert(adjust_reason),
        Column::new("AdjustIncrement", "adjust_increment", Plain),
        Column::new("InDPC", "by_dpc", Plain),
        Column::new("CPU", "cpu", Plain),
        Column::new("     Wait Reason", "wait_reason", Plain)
            .value(|it| wait_reason(it.reason.into())),
        Column::new("    Waited", "waited_ns", Time).value(|it| it.waited_ns.into()),
        Column::new("", "kernel_stack_not_resident", Plain),
        Column::new("", "process_out_of_memory", Plain),
        Column::new("", "direct_switch_attempt", Plain),
    ],
};

/// Report of `laglab readythread`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadyThread;

/// Wait that a wake ended. Its values are unknown if the thread did not wait.
struct EndedWait {
    reason: Option<u8>,
    waited_ns: Option<i64>,
}

impl Report for ReadyThread {
    fn tables(&self) -> Vec<Table> {
        vec![Table::ReadyThreads, Table::CpuRuns, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let wakes = trace.rows(Table::ReadyThreads, Times::At("time_ns"))?;
        let mut switched_out = SwitchedOut {
            tables: &trace.tables,
            runs: trace.tables.table(Table::CpuRuns)?,
            chunk: 0,
            batch: None,
            waits: FxHashMap::default(),
        };
        wakes.list_with(&LAYOUT, out, &[], |batch, rows| {
            let view = ReadyThreadsView::new(batch)?;
            let waits = rows.iter().map(|&row| {
                let (time_ns, thread_id) = (view.time_ns[row], view.thread_id[row]);
                let wait = switched_out.wait(thread_id, time_ns)?;
                let ended = EndedWait {
                    reason: wait.and_then(|wait| wait.reason),
                    waited_ns: wait.map(|wait| time_ns - wait.since_ns),
                };
                Ok((row, ended))
            });
            waits.collect()
        })
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
    /// Index of the next chunk of `runs`.
    chunk: usize,
    /// Rows of the chunk before, and the index of the next row.
    batch: Option<(RecordBatch, usize)>,
    waits: FxHashMap<u32, Option<Wait>>,
}

impl SwitchedOut<'_> {
    /// Returns the wait of a thread that is in progress at `time_ns`. Returns `None` if the thread does not wait, or
    /// if no earlier run of the thread ended. `time_ns` must not be earlier than in the previous call.
    fn wait(&mut self, thread_id: u32, time_ns: i64) -> Result<Option<Wait>, Error> {
        const COLUMNS: [&str; 5] = [
            "end_ns",
            "thread_id",
            "ends_at_switch",
            "state_out",
            "wait_reason_out",
        ];
        while self.advance(time_ns)? {
            let chunk = self.runs.chunks().get(self.chunk);
            if chunk.is_none_or(|chunk| chunk.rows > 0 && chunk.first > time_ns) {
                break;
            }
            self.tables.check()?;
            self.batch = Some((self.runs.read(self.chunk, &COLUMNS)?, 0));
            self.chunk += 1;
        }
        Ok(self.waits.get(&thread_id).copied().flatten())
    }

    /// Reads the rows of the batch whose runs ended at `time_ns` or earlier. Returns true if no row remains.
    fn advance(&mut self, time_ns: i64) -> Result<bool, Error> {
        const WAITING: u8 = 5;
        let Some((batch, next)) = &mut self.batch else {
            return Ok(true);
        };
        let view = CpuRunsView::new(batch)?;
        while *next < view.len() && view.end_ns[*next] <= time_ns {
            let row = *next;
            *next += 1;
            if view.ends_at_switch.get(row) == Some(true) {
                let is_waiting = view.state_out.get(row) == Some(WAITING);
                let wait = is_waiting.then(|| Wait {
                    since_ns: view.end_ns[row],
                    reason: view.wait_reason_out.get(row),
                });
                self.waits.insert(view.thread_id[row], wait);
            }
        }
        Ok(*next >= view.len())
    }
}
