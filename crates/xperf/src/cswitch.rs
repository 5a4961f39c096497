//! `laglab cswitch`: context switches. A run is the time during which a thread stays on a CPU, from one switch to the
//! next. Each switch starts a run and has the columns of this run, such as the ready time before it.

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, Table};

use crate::layout::Fold::Share;
use crate::layout::Format::{Plain, Process, Time};
use crate::layout::{Column, EVENT, Layout, ProcessKey};
use crate::rows::Times;
use crate::scheduling_names::{state, swapable, wait_reason};
use crate::{Error, Recording, Report, Writer};

/// Columns of xperf in xperf's order, followed by columns of the run that the switch starts.
static SWITCHES: Layout<Switch> = Layout {
    name: "cswitch",
    columns: &[
        Column::new(EVENT, "", Plain).value(|_| "CSwitch".into()),
        Column::new(" TimeStamp", "start_ns", Time),
        Column::new("New Process Name ( PID)", "", Process),
        Column::new("   New TID", "thread_id", Plain),
        Column::new("NPri", "priority", Plain),
        Column::new("NQnt", "", Plain).value(|_| "-1".into()),
        Column::new("TmSinceLast", "since_last_ns", Time),
        Column::new("WaitTime", "wait_ticks", Plain),
        Column::new("Old Process Name ( PID)", "previous_", Process).value(|it| it.previous.into()),
        Column::new("   Old TID", "previous_thread_id", Plain),
        Column::new("OPri", "old_priority", Plain).value(|it| it.ended.priority.into()),
        Column::new("OQnt", "", Plain).value(|_| "-1".into()),
        Column::new("       OldState", "old_state", Plain).value(|it| state(it.ended.state.into())),
        Column::new("     Wait Reason", "old_wait_reason", Plain)
            .value(|it| wait_reason(it.ended.wait_reason.into())),
        Column::new("Swapable", "old_swapable", Plain)
            .value(|it| swapable(it.ended.wait_mode.into())),
        Column::new("InSwitchTime", "old_cpu_ns", Time).value(|it| it.ended.cpu_ns.into()),
        Column::new("CPU", "cpu", Plain),
        Column::new("IdealProc", "old_ideal_processor", Plain)
            .value(|it| it.ended.ideal_processor.into()),
        Column::new("  OldRemQnt", "old_remaining_quantum", Plain)
            .value(|it| it.ended.remaining_quantum.into()),
        Column::new("NewPriDecr", "priority_decrement", Plain),
        Column::new("PrevCState", "previous_c_state", Plain),
        Column::new(" ReadyTime", "readied_ns", Time),
        Column::new("     Ready", "ready_ns", Time),
        Column::new("     Waits", "waits_ns", Time),
        Column::new("Rdy Process Name ( PID)", "readying_", Process).value(|it| it.readying.into()),
        Column::new("   Rdy TID", "readying_thread_id", Plain),
        Column::new("InDPC", "readied_by_dpc", Plain),
        Column::new("SwitchOut", "end_ns", Time),
        Column::new("  CPUUsage", "cpu_ns", Time),
        Column::new("NewRank", "rank_out", Plain),
        Column::new("       NewState", "state_out", Plain).convert(state),
        Column::new(" New Wait Reason", "wait_reason_out", Plain).convert(wait_reason),
    ],
};

static BY_PROCESS: Layout<Part> = Layout {
    name: "cswitch_processes",
    columns: &[
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  CPU Usage (us)", "cpu_ns", Time).sum(|part| part.cpu_ns.into()),
        Column::new("CPU Usage (%)", "cpu_percent", Plain).fold(Share),
        Column::new("  Switches", "runs", Plain).sum(|part| part.runs.into()),
        Column::new("    Ready (us)", "ready_ns", Time).sum(|part| part.ready_ns.into()),
        Column::new("Longest Ready (us)", "longest_ready_ns", Time)
            .max(|part| part.ready_ns.into()),
    ],
};

static BY_THREAD: Layout<Part> = Layout {
    name: "cswitch_threads",
    columns: &[
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  ThreadID", "thread_id", Plain),
        Column::new("  CPU Usage (us)", "cpu_ns", Time).sum(|part| part.cpu_ns.into()),
        Column::new("CPU Usage (%)", "cpu_percent", Plain).fold(Share),
        Column::new("  Switches", "runs", Plain).sum(|part| part.runs.into()),
        Column::new("    Ready (us)", "ready_ns", Time).sum(|part| part.ready_ns.into()),
        Column::new("Longest Ready (us)", "longest_ready_ns", Time)
            .max(|part| part.ready_ns.into()),
    ],
};

/// Options of `laglab cswitch`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CSwitch {
    /// Grouping of the sums. By default, the report has a line for each switch instead of sums.
    pub by: Option<Whose>,
}

/// Grouping of CPU use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// By process, as `xperf -a cswitch -process`.
    Process,
    /// By thread, as `xperf -a cswitch -thread`.
    Thread,
}

/// Values of a switch that no row of the table stores.
struct Switch {
    previous: ProcessKey,
    readying: Option<ProcessKey>,
    ended: EndedRun,
}

/// Values of the run that a switch ends. The columns of the old thread show these values.
#[derive(Default)]
struct EndedRun {
    end_ns: i64,
    cpu_ns: Option<i64>,
    priority: Option<i8>,
    state: Option<u8>,
    wait_reason: Option<u8>,
    wait_mode: Option<u8>,
    ideal_processor: Option<u8>,
    remaining_quantum: Option<i32>,
}

impl EndedRun {
    const COLUMNS: [&'static str; 9] = [
        "end_ns",
        "cpu",
        "cpu_ns",
        "priority_out",
        "state_out",
        "wait_reason_out",
        "wait_mode_out",
        "ideal_processor",
        "remaining_quantum_out",
    ];

    fn new(view: &CpuRunsView<'_>, row: usize) -> EndedRun {
        EndedRun {
            end_ns: view.end_ns[row],
            cpu_ns: Some(view.cpu_ns[row]),
            priority: view.priority_out.get(row),
            state: view.state_out.get(row),
            wait_reason: view.wait_reason_out.get(row),
            wait_mode: view.wait_mode_out.get(row),
            ideal_processor: view.ideal_processor.get(row),
            remaining_quantum: view.remaining_quantum_out.get(row),
        }
    }
}

/// Part of a run within the requested time range.
struct Part {
    /// CPU time. It is 0 if switches within the run are probably missing.
    cpu_ns: i64,
    /// 1 if the run began within the range at a switch, otherwise 0.
    runs: u8,
    /// Ready time before the switch.
    ready_ns: Option<i64>,
}

impl Report for CSwitch {
    fn tables(&self) -> Vec<Table> {
        vec![Table::CpuRuns, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        match self.by {
            None => switches(trace, out),
            Some(Whose::Process) => sums(trace, &BY_PROCESS, out),
            Some(Whose::Thread) => sums(trace, &BY_THREAD, out),
        }
    }
}

fn switches(trace: &Recording, out: &mut Writer) -> Result<(), Error> {
    let mut before: FxHashMap<u16, EndedRun> = FxHashMap::default();
    let others = [
        "starts_at_switch",
        "previous_process_row",
        "readying_process_row",
        "readying_process_id",
    ];
    let columns = [&EndedRun::COLUMNS[..], &others].concat();
    let runs = trace.rows(Table::CpuRuns, Times::At("start_ns"))?;
    runs.list_with(&SWITCHES, out, &columns, |batch, rows| {
        let view = CpuRunsView::new(batch)?;
        let ended = (0..view.len()).map(|row| {
            let ended = before.insert(view.cpu[row], EndedRun::new(&view, row));
            ended.filter(|ended| ended.end_ns == view.start_ns[row])
        });
        let mut ended: Vec<Option<EndedRun>> = ended.collect();
        let rows = rows.iter().copied();
        let switches = rows.filter(|row| view.starts_at_switch.get(*row) == Some(true));
        let switches = switches.map(|row| {
            // The idle thread has no row in the table of processes, but it always belongs to the process with id 0.
            let previous_id = view
                .previous_thread_id
                .get(row)
                .filter(|thread| *thread == 0);
            let readying = (
                view.readying_process_row.get(row),
                view.readying_process_id.get(row),
            );
            let switch = Switch {
                previous: (view.previous_process_row.get(row), previous_id),
                readying: view.readying_thread_id.get(row).map(|_| readying),
                ended: ended[row].take().unwrap_or_default(),
            };
            (row, switch)
        });
        Ok(switches.collect())
    })
}

/// Writes sums by process or thread. If a run is only partly within the requested time range, only this part of
/// its CPU time counts.
fn sums(trace: &Recording, layout: &'static Layout<Part>, out: &mut Writer) -> Result<(), Error> {
    let runs = trace.rows(Table::CpuRuns, Times::Overlapping)?;
    let span = runs.span();
    let doubtful = trace.doubtful_runs()?;
    let columns = ["cpu_ns", "thread_id", "starts_at_switch", "ready_ns"];
    runs.sums_with(layout, &["cpu_ns"], out, &columns, |batch, rows| {
        let view = CpuRunsView::new(batch)?;
        let parts = rows.iter().filter_map(|&row| {
            let (start, end) = (view.start_ns[row], view.end_ns[row]);
            let part_ns = end.min(span.end) - start.max(span.start);
            let is_counted = start >= span.start && view.starts_at_switch.get(row) == Some(true);
            let part = Part {
                cpu_ns: if doubtful.is_unsampled(&view, row) {
                    0
                } else {
                    part_ns.max(0)
                },
                runs: is_counted.into(),
                ready_ns: view.ready_ns.get(row).filter(|_| is_counted),
            };
            (end >= span.start && start < span.end).then_some((row, part))
        });
        Ok(parts.collect())
    })?;
    Ok(())
}
