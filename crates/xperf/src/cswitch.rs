//! `laglab cswitch`: context switches. A run is the time during which a thread stays on a CPU, from one switch to the
//! next. Each switch starts a run and has the columns of this run, such as the ready time before it.

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, Table};

use crate::process_filter::ProcessFilter;
use crate::scheduling_names::{state, swapable, wait_reason};
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer, percent};

/// Columns of xperf in xperf's order, followed by columns of the run that the switch starts.
static SWITCHES: Layout = Layout {
    name: "cswitch",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "start_ns"),
        Column::process("New Process Name ( PID)", ""),
        Column::new("   New TID", "thread_id"),
        Column::new("NPri", "priority"),
        Column::text_only("NQnt"),
        Column::new("TmSinceLast", "since_last_ns"),
        Column::new("WaitTime", "wait_ticks"),
        Column::process("Old Process Name ( PID)", "previous_"),
        Column::new("   Old TID", "previous_thread_id"),
        Column::new("OPri", "old_priority"),
        Column::text_only("OQnt"),
        Column::new("       OldState", "old_state"),
        Column::new("     Wait Reason", "old_wait_reason"),
        Column::new("Swapable", "old_swapable"),
        Column::new("InSwitchTime", "old_cpu_ns"),
        Column::new("CPU", "cpu"),
        Column::new("IdealProc", "old_ideal_processor"),
        Column::new("  OldRemQnt", "old_remaining_quantum"),
        Column::new("NewPriDecr", "priority_decrement"),
        Column::new("PrevCState", "previous_c_state"),
        Column::new(" ReadyTime", "readied_ns"),
        Column::new("     Ready", "ready_ns"),
        Column::new("     Waits", "waits_ns"),
        Column::process("Rdy Process Name ( PID)", "readying_"),
        Column::new("   Rdy TID", "readying_thread_id"),
        Column::new("InDPC", "readied_by_dpc"),
        Column::new("SwitchOut", "end_ns"),
        Column::new("  CPUUsage", "cpu_ns"),
        Column::new("NewRank", "rank_out"),
        Column::new("       NewState", "state_out"),
        Column::new(" New Wait Reason", "wait_reason_out"),
    ],
};

static BY_PROCESS: Layout = Layout {
    name: "cswitch_processes",
    labelled: false,
    columns: &[
        Column::process("Process Name ( PID)", ""),
        Column::new("  CPU Usage (us)", "cpu_ns"),
        Column::new("CPU Usage (%)", "cpu_percent"),
        Column::new("  Switches", "runs"),
        Column::new("    Ready (us)", "ready_ns"),
        Column::new("Longest Ready (us)", "longest_ready_ns"),
    ],
};

static BY_THREAD: Layout = Layout {
    name: "cswitch_threads",
    labelled: false,
    columns: &[
        Column::process("Process Name ( PID)", ""),
        Column::new("  ThreadID", "thread_id"),
        Column::new("  CPU Usage (us)", "cpu_ns"),
        Column::new("CPU Usage (%)", "cpu_percent"),
        Column::new("  Switches", "runs"),
        Column::new("    Ready (us)", "ready_ns"),
        Column::new("Longest Ready (us)", "longest_ready_ns"),
    ],
};

/// Columns of the table of runs that the list of switches reads.
const SWITCH_COLUMNS: [&str; 29] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "thread_id",
    "process_row",
    "process_id",
    "starts_at_switch",
    "readied_ns",
    "ready_ns",
    "waits_ns",
    "since_last_ns",
    "previous_thread_id",
    "previous_process_row",
    "readying_thread_id",
    "readying_process_row",
    "readying_process_id",
    "readied_by_dpc",
    "priority",
    "priority_decrement",
    "wait_ticks",
    "previous_c_state",
    "priority_out",
    "state_out",
    "wait_reason_out",
    "wait_mode_out",
    "rank_out",
    "remaining_quantum_out",
    "ideal_processor",
];

/// Options of `laglab cswitch`.
#[derive(Clone, Debug, Default)]
pub struct CSwitch {
    /// Grouping of the sums. By default, the report has a line for each switch instead of sums.
    pub by: Option<Whose>,
    /// Filter by process.
    pub processes: ProcessFilter,
    /// Ids of the threads to which the listed switches lead. If empty, switches to all threads are listed.
    pub thread: Vec<u32>,
    /// CPUs of the listed switches. If empty, all CPUs are included.
    pub cpu: Vec<u16>,
}

/// Grouping of CPU use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// By process, as `xperf -a cswitch -process`.
    Process,
    /// By thread, as `xperf -a cswitch -thread`.
    Thread,
}

/// Values of the run that a switch ends. The columns of the old thread show these values.
#[derive(Clone, Copy)]
struct EndedRun {
    end_ns: i64,
    cpu_ns: i64,
    priority: Option<i8>,
    state: Option<u8>,
    wait_reason: Option<u8>,
    wait_mode: Option<u8>,
    ideal_processor: Option<u8>,
    remaining_quantum: Option<i32>,
}

impl EndedRun {
    fn new(view: &CpuRunsView<'_>, row: usize) -> EndedRun {
        EndedRun {
            end_ns: view.end_ns[row],
            cpu_ns: view.cpu_ns[row],
            priority: view.priority_out.get(row),
            state: view.state_out.get(row),
            wait_reason: view.wait_reason_out.get(row),
            wait_mode: view.wait_mode_out.get(row),
            ideal_processor: view.ideal_processor.get(row),
            remaining_quantum: view.remaining_quantum_out.get(row),
        }
    }
}

impl Report for CSwitch {
    fn tables(&self) -> Vec<Table> {
        vec![Table::CpuRuns, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        match self.by {
            None => self.switches(trace, out),
            Some(whose) => self.sums(trace, out, whose),
        }
    }
}

impl CSwitch {
    fn switches(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::CpuRuns)?;
        let wanted = self.processes.wanted(&trace.names);
        let mut before: FxHashMap<u16, EndedRun> = FxHashMap::default();
        out.table(&SWITCHES)?;
        // The table is sorted by the end of runs, but the runs are selected by their start. So any later chunk may
        // contain selected runs.
        for batch in trace
            .tables
            .batches(&table, trace.range.start..i64::MAX, &SWITCH_COLUMNS)
        {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            let before: Vec<Option<EndedRun>> = (0..view.len())
                .map(|row| before.insert(view.cpu[row], EndedRun::new(&view, row)))
                .collect();
            out.rows(0..view.len(), |row, lines| {
                let (start, end, cpu) = (view.start_ns[row], view.end_ns[row], view.cpu[row]);
                let old = before[row].filter(|old| old.end_ns == start);
                let process = (view.process_row.get(row), view.process_id.get(row));
                let is_wanted = view.starts_at_switch.get(row) == Some(true)
                    && trace.range.contains(&start)
                    && wanted.has(process.0, process.1)
                    && (self.thread.is_empty() || self.thread.contains(&view.thread_id[row]))
                    && (self.cpu.is_empty() || self.cpu.contains(&cpu));
                if !is_wanted {
                    return Ok(());
                }
                let previous = view.previous_thread_id.get(row);
                // The idle thread has no row in the table of processes, but it always belongs to the process
                // with id 0.
                let previous_id = previous.filter(|thread| *thread == 0);
                let previous_row = view.previous_process_row.get(row);
                let readying = (
                    view.readying_process_row.get(row),
                    view.readying_process_id.get(row),
                );
                let readied_by = match view.readying_thread_id.get(row) {
                    Some(_) => Value::Process(trace.names.process(readying.0, readying.1)),
                    None => Value::Unknown,
                };
                let values = [
                    Value::Time(start),
                    Value::Process(trace.names.process(process.0, process.1)),
                    Value::Number(view.thread_id[row].into()),
                    Value::number(view.priority.get(row)),
                    Value::Number(-1),
                    Value::time(view.since_last_ns.get(row)),
                    Value::number(view.wait_ticks.get(row)),
                    Value::Process(trace.names.process(previous_row, previous_id)),
                    Value::number(previous),
                    Value::number(old.and_then(|old| old.priority)),
                    Value::Number(-1),
                    state(old.and_then(|old| old.state)),
                    wait_reason(old.and_then(|old| old.wait_reason)),
                    swapable(old.and_then(|old| old.wait_mode)),
                    Value::time(old.map(|old| old.cpu_ns)),
                    Value::Number(cpu.into()),
                    Value::number(old.and_then(|old| old.ideal_processor)),
                    Value::number(old.and_then(|old| old.remaining_quantum)),
                    Value::number(view.priority_decrement.get(row)),
                    Value::number(view.previous_c_state.get(row)),
                    Value::time(view.readied_ns.get(row)),
                    Value::time(view.ready_ns.get(row)),
                    Value::time(view.waits_ns.get(row)),
                    readied_by,
                    Value::number(view.readying_thread_id.get(row)),
                    Value::flag(view.readied_by_dpc.get(row)),
                    Value::Time(end),
                    Value::Time(view.cpu_ns[row]),
                    Value::number(view.rank_out.get(row)),
                    state(view.state_out.get(row)),
                    wait_reason(view.wait_reason_out.get(row)),
                ];
                lines.row("CSwitch", &values)
            })?;
        }
        Ok(())
    }

    /// Writes sums by process or thread. If a run is only partly within the requested time range, only this part of
    /// its CPU time counts.
    fn sums(&self, trace: &Recording, out: &mut Writer, whose: Whose) -> Result<(), Error> {
        #[derive(Default)]
        struct Sum {
            cpu_ns: i64,
            runs: u64,
            ready_ns: Option<i64>,
            longest_ready_ns: Option<i64>,
        }
        type Key = (Option<u32>, Option<u32>, Option<u32>);
        let table = trace.tables.recorded(Table::CpuRuns)?;
        let span = trace.span(&[&table]);
        let wanted = self.processes.wanted(&trace.names);
        let cpus = trace.cpus()?;
        let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
        let doubtful = trace.doubtful_runs()?;
        let columns = [
            "start_ns",
            "end_ns",
            "cpu_ns",
            "cpu",
            "thread_id",
            "process_row",
            "process_id",
            "starts_at_switch",
            "ready_ns",
        ];
        for batch in trace
            .tables
            .batches(&table, trace.range.start..i64::MAX, &columns)
        {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let (start, end) = (view.start_ns[row], view.end_ns[row]);
                let process = (view.process_row.get(row), view.process_id.get(row));
                let thread = view.thread_id[row];
                if end < span.start
                    || start >= span.end
                    || !wanted.has(process.0, process.1)
                    || !(self.thread.is_empty() || self.thread.contains(&thread))
                    || !(self.cpu.is_empty() || self.cpu.contains(&view.cpu[row]))
                {
                    continue;
                }
                let thread = (whose == Whose::Thread).then_some(thread);
                let sum = sums.entry((process.0, process.1, thread)).or_default();
                if !doubtful.is_unsampled(&view, row) {
                    let part = end.min(span.end) - start.max(span.start);
                    sum.cpu_ns = sum.cpu_ns.saturating_add(part.max(0));
                }
                if start < span.start || view.starts_at_switch.get(row) != Some(true) {
                    continue;
                }
                sum.runs += 1;
                if let Some(ready) = view.ready_ns.get(row) {
                    sum.ready_ns = Some(sum.ready_ns.unwrap_or(0).saturating_add(ready));
                    sum.longest_ready_ns = sum.longest_ready_ns.max(Some(ready));
                }
            }
        }
        let all_ns = (span.end - span.start).saturating_mul(cpus.len() as i64);
        let mut sums: Vec<(Key, Sum)> = sums.into_iter().collect();
        sums.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.cpu_ns), *key));
        out.table(match whose {
            Whose::Process => &BY_PROCESS,
            Whose::Thread => &BY_THREAD,
        })?;
        for ((row, id, thread), sum) in sums {
            let process = Value::Process(trace.names.process(row, id));
            let used = Value::Time(sum.cpu_ns);
            let share = Value::Percent(percent(sum.cpu_ns, all_ns));
            let runs = Value::count(sum.runs);
            let ready = Value::time(sum.ready_ns);
            let longest = Value::time(sum.longest_ready_ns);
            match thread {
                None => out.row("", &[process, used, share, runs, ready, longest])?,
                Some(thread) => {
                    let thread = Value::Number(thread.into());
                    out.row("", &[process, thread, used, share, runs, ready, longest])?;
                }
            }
        }
        Ok(())
    }
}
