//! Sums of the runs of threads, and of their waits.

use std::collections::BTreeMap;
use std::ops::Range;

use explain::{InterruptReader, Reader};
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, DoubtfulRuns, StoreError, Table, ThreadsView};

use crate::Kind;
use crate::distribution::{Distribution, DurationCollector};
use crate::functions::{Code, FunctionNames};
use crate::sums::{Key, Slot, Sums};
use crate::wait_code::WaitCode;
use crate::wakes::{Waker, Wakes};

const COLUMNS: [&str; 15] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_row",
    "planned_thread_id",
    "starts_at_switch",
    "ready_ns",
    "waits_ns",
    "previous_wait_reason",
    "readying_process_row",
    "readied_by_dpc",
    "stack_id",
];

/// Facts about the runs of threads, in addition to the sums of the compared rows.
pub(crate) struct Runs {
    /// True if the trace has context switches. Without context switches, each CPU has only one run, which contains no
    /// information.
    pub(crate) has_switches: bool,
    /// Rows of the table `threads`, by the name of the compared row to which the thread belongs. Names are in
    /// lower case.
    pub(crate) threads: BTreeMap<String, Vec<u32>>,
    /// Stacks of waits, by the name of the compared row to which the wait belongs. Names are in lower case.
    pub(crate) wait_stacks: BTreeMap<String, Vec<u32>>,
    /// Waits of ready threads for a CPU.
    pub(crate) ready: Distribution,
    /// Waits of programs, by the program that ended them.
    pub(crate) wakes: Wakes,
}

/// Adds the runs and waits of threads to the sums, except idle threads and doubtful runs.
pub(crate) fn add(
    reader: &Reader<'_>,
    doubtful: &DoubtfulRuns,
    functions: &mut FunctionNames<'_>,
    sums: &mut Sums,
) -> Result<Runs, StoreError> {
    let blocks = sums.blocks.clone();
    let table = reader.table(Table::CpuRuns)?;
    let all = i64::MIN..i64::MAX;
    let range = blocks
        .part
        .as_ref()
        .map_or(all.clone(), |part| part.start..i64::MAX);
    let wait_code = WaitCode::read(reader, functions, range.clone())?;
    let mut slots = Slots::new(reader, functions, wait_code)?;
    let mut interrupted = InterruptReader::new(reader, blocks.part.clone().unwrap_or(all.clone()))?;
    // For each interrupt of a run: the block, and the time in nanoseconds.
    let mut inside: Vec<(usize, i64)> = Vec::new();
    let mut has_switches = false;
    let mut durations = DurationCollector::new(blocks.count);
    let mut wakes = Wakes::default();
    for batch in reader.batches(&table, range, &COLUMNS) {
        let batch = batch?;
        let runs = CpuRunsView::new(&batch)?;
        for row in 0..runs.len() {
            let (start, end) = (runs.start_ns[row], runs.end_ns[row]);
            has_switches |= runs.starts_at_switch.get(row) == Some(true);
            let ran = match &blocks.part {
                // If the whole trace is compared, runs of length 0 count, too.
                None => Some(start..end),
                Some(_) => blocks.within(start..end),
            };
            inside.clear();
            if let Some(ran) = &ran {
                let mut left = ran.end.saturating_sub(ran.start);
                interrupted.of_run(runs.cpu[row], end, left, |at, ns| {
                    inside.push((blocks.nearest(at), ns.min(left)));
                    left = left.saturating_sub(ns).max(0);
                })?;
            }
            if runs.thread_id[row] == 0 || doubtful.is(&runs, row) {
                continue;
            }
            let process = runs.process_row.get(row);
            let programs = slots.of_process(process, sums);
            if let Some(ran) = &ran {
                let thread = slots.of_thread(process, runs.thread_row.get(row), sums);
                for (kind, slot) in [(Kind::Program, programs.ran), (Kind::Thread, thread)] {
                    let block_sums = sums.blocks_mut(kind, slot);
                    blocks.split(ran.clone(), |block, ns| {
                        block_sums[block].add(0.0, ns as f64)
                    });
                    block_sums[blocks.nearest(ran.end)].add(1.0, 0.0);
                    for (block, ns) in &inside {
                        block_sums[*block].add(0.0, -(*ns as f64));
                    }
                }
            }
            let ready_ns = runs.ready_ns.get(row).unwrap_or(0).max(0);
            let ready = start.saturating_sub(ready_ns)..start;
            add_wait(sums, Kind::Ready, programs.ready, &ready);
            if let Some(block) = blocks.at(start) {
                durations.add(block, ready_ns);
            }
            if let Some(ns) = runs.waits_ns.get(row).filter(|ns| *ns > 0)
                && let Some(reason) = runs.previous_wait_reason.get(row)
            {
                let waited = ready.start.saturating_sub(ns)..ready.start;
                let slot = slots.of_wait(process, reason, sums);
                add_wait(sums, Kind::Wait, slot, &waited);
                if !slots.wait_code.is_empty() {
                    let stack = runs.stack_id.get(row);
                    let slot = slots.of_wait_code(process, reason, stack, sums);
                    add_wait(sums, Kind::WaitCode, slot, &waited);
                }
                if let Some(waited) = blocks.within(waited) {
                    let waker = match runs.readied_by_dpc.get(row) {
                        Some(true) => Some(Waker::Dpc),
                        _ => (runs.readying_process_row.get(row))
                            .map(|waker| Waker::Program(slots.of_process(Some(waker), sums).ran)),
                    };
                    wakes.add(programs.ran, waker, reason, waited.end - waited.start);
                }
            }
        }
    }
    wakes.name(sums);
    Ok(Runs {
        has_switches,
        threads: by_name(slots.threads, sums),
        wait_stacks: by_name(slots.wait_stacks, sums),
        ready: durations.finish(),
        wakes,
    })
}

/// Returns the ids that belong to each row, by the name of the row in lower case. An id is a row of `threads` or the id
/// of a stack.
fn by_name(ids: Vec<(Slot, u32)>, sums: &Sums) -> BTreeMap<String, Vec<u32>> {
    let mut ids_by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (slot, id) in ids {
        if let Some(name) = sums.name(slot) {
            ids_by_name.entry(name.to_lowercase()).or_default().push(id);
        }
    }
    for ids in ids_by_name.values_mut() {
        ids.sort_unstable();
        ids.dedup();
    }
    ids_by_name
}

fn add_wait(sums: &mut Sums, kind: Kind, slot: Slot, waited: &Range<i64>) {
    let blocks = sums.blocks.clone();
    if let Some(waited) = blocks.within(waited.clone()) {
        let block_sums = sums.blocks_mut(kind, slot);
        blocks.split(waited.clone(), |block, ns| {
            block_sums[block].add(0.0, ns as f64)
        });
        block_sums[blocks.nearest(waited.end)].add(1.0, 0.0);
    }
}

/// Slots of the two rows of a process: its CPU time and its waits for a CPU.
#[derive(Clone, Copy)]
struct Programs {
    ran: Slot,
    ready: Slot,
}

/// Slots of the processes, threads and waits that occurred so far.
struct Slots<'r, 'f, 'a> {
    reader: &'r Reader<'r>,
    functions: &'f mut FunctionNames<'a>,
    /// Process id and start address of each thread. The index is the row of the table `threads`.
    starts: Vec<(Option<u32>, Option<u64>)>,
    processes: FxHashMap<Option<u32>, Programs>,
    of_threads: FxHashMap<(Option<u32>, Option<u32>), Slot>,
    waits: FxHashMap<(Option<u32>, u8), Slot>,
    wait_code: WaitCode,
    of_wait_code: FxHashMap<(Option<u32>, u8, Option<u32>), Slot>,
    /// Stacks of waits with the slots of the code that waited.
    wait_stacks: Vec<(Slot, u32)>,
    /// Rows of `threads` with their slots.
    threads: Vec<(Slot, u32)>,
}

impl<'r, 'f, 'a> Slots<'r, 'f, 'a> {
    fn new(
        reader: &'r Reader<'r>,
        functions: &'f mut FunctionNames<'a>,
        wait_code: WaitCode,
    ) -> Result<Slots<'r, 'f, 'a>, StoreError> {
        let table = reader.table(Table::Threads)?;
        let mut starts = Vec::new();
        for batch in reader.batches(
            &table,
            i64::MIN..i64::MAX,
            &["process_id", "win32_start_address"],
        ) {
            let batch = batch?;
            let view = ThreadsView::new(&batch)?;
            let rows = 0..view.len();
            starts.extend(
                rows.map(|row| (view.process_id.get(row), view.win32_start_address.get(row))),
            );
        }
        Ok(Slots {
            reader,
            functions,
            starts,
            processes: FxHashMap::default(),
            of_threads: FxHashMap::default(),
            waits: FxHashMap::default(),
            wait_code,
            of_wait_code: FxHashMap::default(),
            wait_stacks: Vec::new(),
            threads: Vec::new(),
        })
    }

    fn program(&self, process: Option<u32>) -> Option<&'r str> {
        let reader: &'r Reader<'r> = self.reader;
        reader.names.process(process, None).name
    }

    fn of_process(&mut self, process: Option<u32>, sums: &mut Sums) -> Programs {
        if let Some(known) = self.processes.get(&process) {
            return *known;
        }
        let name = self.program(process);
        let slots = Programs {
            ran: sums.slot(Kind::Program, name, Key::Name),
            ready: sums.slot(Kind::Ready, name, Key::Name),
        };
        self.processes.insert(process, slots);
        slots
    }

    fn of_wait(&mut self, process: Option<u32>, reason: u8, sums: &mut Sums) -> Slot {
        if let Some(known) = self.waits.get(&(process, reason)) {
            return *known;
        }
        let program = self.program(process);
        let name = program.map(|name| format!("{name}: {}", explain::wait_reason(reason)));
        let program = program.unwrap_or_default().to_lowercase();
        let key = Key::Wait(program.into(), reason);
        let slot = sums.slot(Kind::Wait, name.as_deref(), key);
        self.waits.insert((process, reason), slot);
        slot
    }

    /// Returns the slot of the code that waited, for one program and one wait reason. `stack` is the id of the waiting
    /// thread's stack.
    fn of_wait_code(
        &mut self,
        process: Option<u32>,
        reason: u8,
        stack: Option<u32>,
        sums: &mut Sums,
    ) -> Slot {
        if let Some(known) = self.of_wait_code.get(&(process, reason, stack)) {
            return *known;
        }
        let code = self.wait_code.at(process, stack);
        let named = self.program(process).zip(code).map(|(program, code)| {
            let reason_name = explain::wait_reason(reason);
            let name = format!("{program}: {reason_name} in {}", code.label());
            let code = Code {
                module: code.module.to_lowercase().into(),
                function: code.function.clone(),
            };
            (
                name,
                Key::WaitCode(program.to_lowercase().into(), reason, code),
            )
        });
        let slot = match named {
            Some((name, key)) => sums.slot(Kind::WaitCode, Some(&name), key),
            None => sums.slot(Kind::WaitCode, None, Key::Name),
        };
        self.wait_stacks.extend(stack.map(|stack| (slot, stack)));
        self.of_wait_code.insert((process, reason, stack), slot);
        slot
    }

    fn of_thread(&mut self, process: Option<u32>, thread: Option<u32>, sums: &mut Sums) -> Slot {
        if let Some(known) = self.of_threads.get(&(process, thread)) {
            return *known;
        }
        let named = thread.and_then(|row| self.named(process, row));
        let (name, key) = match named {
            Some((name, key)) => (Some(name), key),
            None => (None, Key::Name),
        };
        let slot = sums.slot(Kind::Thread, name.as_deref(), key);
        self.threads.extend(thread.map(|row| (slot, row)));
        self.of_threads.insert((process, thread), slot);
        slot
    }

    /// Returns a name of a thread that does not change with a boot: the name of its program, and the name or the start
    /// function of the thread.
    fn named(&mut self, process: Option<u32>, thread: u32) -> Option<(String, Key)> {
        let program = self.program(process)?;
        let program_name: Box<str> = program.to_lowercase().into();
        if let Some(name) = self.reader.names.thread_name(thread) {
            return Some((
                format!("{program}: {name}"),
                Key::Thread(program_name, None),
            ));
        }
        let (process_id, start) = *self.starts.get(thread as usize)?;
        let id = self.functions.in_process(process_id?, start?)?;
        let code = self.functions.code(id);
        let key = Key::Thread(program_name, Some(code.module.to_lowercase().into()));
        Some((format!("{program}: starts in {}", code.label()), key))
    }
}
