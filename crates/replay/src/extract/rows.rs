//! Runs and wakes of threads, from the tables `cpu_runs` and `ready_threads`.

use explain::{Reader, TERMINATED, WAITING};
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

/// Run of a thread on a processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) cpu: u16,
    /// True if the trace has the switch that started the run.
    pub(super) is_begun: bool,
    pub(super) after: After,
    pub(super) wait_reason: u8,
    pub(super) ready_ns: Option<u64>,
    /// Priority without boosts, if it is known.
    pub(super) base: Option<u8>,
    pub(super) foreground_boost: u8,
    pub(super) rank: Option<u8>,
    pub(super) ideal: Option<u8>,
    pub(super) remaining_quantum: Option<i32>,
    /// True if the thread may have run unseen before this run.
    pub(super) is_doubtful: bool,
}

/// State of a thread after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The trace ends during the run.
    Running,
    Ready,
    Waiting,
    Ended,
}

/// Event that makes a thread ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    pub(super) at_ns: u64,
    pub(super) cpu: u16,
    /// Index of the thread that did it. `None` if a DPC did it, or if it is unknown.
    pub(super) by: Option<u32>,
    pub(super) by_dpc: bool,
    pub(super) boost: u8,
    pub(super) is_paged_out: bool,
}

/// Runs and wakes of all threads except idle threads.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Row in `processes` and id of each process.
    pub(super) processes: Vec<(Option<u32>, Option<u32>)>,
    /// Row in `threads`, id, and index of the process of each thread.
    pub(super) threads: Vec<(Option<u32>, u32, u32)>,
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) wakes: Vec<Vec<Wake>>,
    /// End of the recorded time.
    pub(super) end_ns: u64,
    /// Sorted times at which runs of any thread end.
    pub(super) ends: Vec<u64>,
    by_process: FxHashMap<u64, u32>,
    by_thread: FxHashMap<u64, u32>,
}

/// Returns a key for a row, or for an id if the row is unknown.
fn key(row: Option<u32>, id: u32) -> u64 {
    row.map_or(1 << 40 | u64::from(id), u64::from)
}

impl Rows {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Rows, StoreError> {
        let mut rows = Rows::default();
        let table = reader.table(Table::CpuRuns)?;
        let columns = [
            "start_ns",
            "end_ns",
            "cpu",
            "thread_id",
            "thread_row",
            "process_id",
            "process_row",
            "starts_at_switch",
            "ends_at_switch",
            "planned_thread_id",
            "previous_out_ns",
            "readied_ns",
            "ready_ns",
            "ran_unseen",
            "priority",
            "priority_decrement",
            "state_out",
            "wait_reason_out",
            "rank_out",
            "remaining_quantum_out",
            "ideal_processor",
        ];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let end_ns = view.end_ns[row].max(0) as u64;
                rows.end_ns = rows.end_ns.max(end_ns);
                rows.ends.push(end_ns);
                if view.thread_id[row] == 0 {
                    continue;
                }
                let thread = rows.thread(
                    view.thread_row.get(row),
                    view.thread_id[row],
                    view.process_row.get(row),
                    view.process_id.get(row),
                );
                let decrement = view.priority_decrement.get(row);
                let priority = view.priority.get(row);
                let boosts = decrement.map(|boosts| (boosts & 15) + (boosts >> 4));
                let ends = view.ends_at_switch.get(row) == Some(true);
                let run = Run {
                    start_ns: view.start_ns[row].max(0) as u64,
                    end_ns,
                    cpu: view.cpu[row],
                    is_begun: view.starts_at_switch.get(row) == Some(true),
                    after: match view.state_out.get(row) {
                        _ if !ends => After::Running,
                        Some(WAITING) => After::Waiting,
                        Some(TERMINATED) => After::Ended,
                        _ => After::Ready,
                    },
                    wait_reason: view.wait_reason_out.get(row).unwrap_or(0),
                    ready_ns: (view.ready_ns.get(row)).and_then(|ns| u64::try_from(ns).ok()),
                    base: (priority.and_then(|value| u8::try_from(value).ok()))
                        .zip(boosts)
                        .and_then(|(priority, boosts)| priority.checked_sub(boosts)),
                    foreground_boost: decrement.unwrap_or(0) & 15,
                    rank: view.rank_out.get(row),
                    ideal: view.ideal_processor.get(row),
                    remaining_quantum: view.remaining_quantum_out.get(row),
                    is_doubtful: view.ran_unseen.get(row) == Some(true)
                        || view.planned_thread_id.get(row).is_some(),
                };
                rows.runs[thread as usize].push(run);
            }
        }
        rows.ends.sort_unstable();
        for runs in &mut rows.runs {
            runs.sort_by_key(|run| run.start_ns);
        }
        rows.read_wakes(reader)?;
        Ok(rows)
    }

    fn read_wakes(&mut self, reader: &Reader<'_>) -> Result<(), StoreError> {
        let table = reader.table(Table::ReadyThreads)?;
        let columns = [
            "time_ns",
            "cpu",
            "thread_id",
            "thread_row",
            "process_id",
            "process_row",
            "readying_thread_id",
            "readying_thread_row",
            "readying_process_id",
            "readying_process_row",
            "adjust_increment",
            "by_dpc",
            "kernel_stack_not_resident",
            "process_out_of_memory",
        ];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = ReadyThreadsView::new(&batch)?;
            for row in 0..view.len() {
                let by_dpc = view.by_dpc.get(row) == Some(true);
                let by = (view.readying_thread_id.get(row)).filter(|id| *id != 0 && !by_dpc);
                let by = by.map(|id| {
                    self.thread(
                        view.readying_thread_row.get(row),
                        id,
                        view.readying_process_row.get(row),
                        view.readying_process_id.get(row),
                    )
                });
                let thread = self.thread(
                    view.thread_row.get(row),
                    view.thread_id[row],
                    view.process_row.get(row),
                    view.process_id.get(row),
                );
                let wake = Wake {
                    at_ns: view.time_ns[row].max(0) as u64,
                    cpu: view.cpu[row],
                    by,
                    by_dpc,
                    boost: view.adjust_increment.get(row).unwrap_or(0).max(0) as u8,
                    is_paged_out: view.kernel_stack_not_resident.get(row) == Some(true)
                        || view.process_out_of_memory.get(row) == Some(true),
                };
                self.wakes[thread as usize].push(wake);
            }
        }
        Ok(())
    }

    /// Returns the index of a thread, which is added if it is new.
    fn thread(
        &mut self,
        row: Option<u32>,
        id: u32,
        process_row: Option<u32>,
        process_id: Option<u32>,
    ) -> u32 {
        if let Some(known) = self.by_thread.get(&key(row, id)) {
            return *known;
        }
        let process = self.add_process(process_row, process_id);
        let new = self.threads.len() as u32;
        self.threads.push((row, id, process));
        self.runs.push(Vec::new());
        self.wakes.push(Vec::new());
        self.by_thread.insert(key(row, id), new);
        new
    }

    fn add_process(&mut self, row: Option<u32>, id: Option<u32>) -> u32 {
        let new = self.processes.len() as u32;
        let key = key(row, id.unwrap_or(u32::MAX));
        let index = *self.by_process.entry(key).or_insert(new);
        if index == new {
            self.processes.push((row, id));
        }
        index
    }

    /// Returns the index of a process that has threads.
    pub(super) fn process(&self, row: Option<u32>, id: Option<u32>) -> Option<u32> {
        let key = key(row, id.unwrap_or(u32::MAX));
        self.by_process.get(&key).copied()
    }

    /// Returns the index of a thread that ran or was readied.
    pub(super) fn thread_index(&self, row: Option<u32>, id: u32) -> Option<u32> {
        self.by_thread.get(&key(row, id)).copied()
    }
}
