//! Context switches and ready events, in the order of time over all CPUs, become runs.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::recorded::Recorded;
use crate::run::{Ready, Run, SwitchIn, SwitchOut};
use crate::schema::Rows;
use crate::stack_index::StackCursor;
use crate::world::{KnownThread, ThreadIds, World};
use crate::{ContextSwitches, CpuRuns, ReadyThreads};

/// Runs that are put into columns at once: few enough to stay in the CPU's first cache.
const RUNS_AT_ONCE: usize = 64;

/// The scheduler's state at the end of a slice of time.
#[derive(Debug)]
pub(crate) struct Scheduling {
    /// By number; those that have switched.
    cpus: Vec<Option<Running>>,
    /// Index in `threads` of each thread that was met.
    indices: FxHashMap<u32, u32>,
    threads: Vec<Thread>,
    stacks: StackCursor,
    /// Runs that ended and are not in columns yet.
    ended: Vec<Run>,
    /// When CPUs' switches contradicted each other, rising.
    contradictions: Vec<i64>,
    /// The first switch, at which runs begin whose switch-in is not in the trace, and the last.
    switched_ns: Option<(i64, i64)>,
    recorded: Recorded,
    /// From when and until when the trace has all processors' switches.
    complete: Range<i64>,
}

/// The run under way on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    start_ns: i64,
    /// What the switch-in says; unknown for a run that began before the trace.
    switch_in: Option<SwitchIn>,
}

/// What is remembered of a thread between its runs.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    known: KnownThread,
    out: Option<SwitchOut>,
    ready: Option<Ready>,
    /// It runs, and was made ready for its next run already: its wait was over before it began.
    next_ready: Option<Ready>,
    runs: bool,
}

impl Scheduling {
    /// Runs that were under way when recording began are taken to begin at the first switch, or when
    /// the trace's record of their CPU does.
    pub(crate) fn new(recorded: Recorded) -> Scheduling {
        Scheduling {
            cpus: Vec::new(),
            indices: FxHashMap::default(),
            threads: Vec::new(),
            stacks: StackCursor::default(),
            ended: Vec::new(),
            contradictions: Vec::new(),
            switched_ns: None,
            complete: recorded.of_all(),
            recorded,
        }
    }

    /// Takes the next slice's rows, sorted by time: fills what ready events say of who readied,
    /// and gives the runs that end in the slice.
    pub(crate) fn join(
        &mut self,
        switches: &ContextSwitches,
        ready: &mut ReadyThreads,
        world: &World<'_>,
    ) -> CpuRuns {
        let mut runs = CpuRuns::default();
        runs.reserve(switches.len());
        let (mut switch, mut readied) = (0, 0);
        loop {
            let next_switch = switches.time_ns.get(switch).copied();
            let next_ready = ready.time_ns.get(readied).copied();
            // Who is readied and chosen at one moment was readied first.
            match (next_switch, next_ready) {
                (None, None) => break,
                (Some(at), other) if other.is_none_or(|other| at < other) => {
                    self.switch(switches, switch, world);
                    switch += 1;
                    if self.ended.len() == RUNS_AT_ONCE {
                        runs.extend(&self.ended);
                        self.ended.clear();
                    }
                }
                _ => {
                    self.ready(ready, readied, world);
                    readied += 1;
                }
            }
        }
        runs.extend(&self.ended);
        self.ended.clear();
        runs
    }

    /// The runs that are under way at the end of the trace, in the order of CPUs; its last event is
    /// at `last_ns`.
    pub(crate) fn finish(mut self, last_ns: i64, world: &World<'_>) -> CpuRuns {
        let mut runs = CpuRuns::default();
        let last_switch_ns = self.switched_ns.map_or(last_ns, |(_, last)| last);
        let end_ns = self.recorded.until_ns(last_ns, last_switch_ns);
        for (cpu, running) in (0..).zip(std::mem::take(&mut self.cpus)) {
            if let Some(running) = running
                && let Some(switch_in) = running.switch_in
            {
                let whose = (switch_in.thread_id, switch_in.thread);
                let until_ns = self.recorded.end_ns(cpu).unwrap_or(end_ns);
                let end_ns = end_ns.min(until_ns).max(running.start_ns);
                self.run(cpu, running, whose, end_ns, None, world);
            }
        }
        runs.extend(&self.ended);
        runs
    }

    /// Index in `threads` of the thread with an id.
    #[inline]
    fn index(&mut self, thread_id: u32) -> u32 {
        let threads = &mut self.threads;
        *self.indices.entry(thread_id).or_insert_with(|| {
            threads.push(Thread::default());
            (threads.len() - 1) as u32
        })
    }

    fn ready(&mut self, rows: &mut ReadyThreads, row: usize, world: &World<'_>) {
        let (time_ns, cpu) = (rows.time_ns[row], rows.cpu[row]);
        let thread_id = rows.thread_id[row];
        let index = self.index(thread_id);
        let thread = &mut self.threads[index as usize];
        let ids = thread.known.at(world, thread_id, time_ns);
        rows.thread_row.push(ids.thread_row);
        rows.process_id.push(ids.process_id);
        rows.process_row.push(ids.process_row);
        let running = self.cpus.get(usize::from(cpu)).copied().flatten();
        let running = running.and_then(|running| running.switch_in);
        let by = running.map(|switch_in| switch_in.thread_id);
        let by_ids = running.map(|switch_in| {
            let thread = &mut self.threads[switch_in.thread as usize];
            thread.known.at(world, switch_in.thread_id, time_ns)
        });
        let by_ids = by_ids.unwrap_or_default();
        rows.readying_thread_id.push(by);
        rows.readying_thread_row.push(by_ids.thread_row);
        rows.readying_process_id.push(by_ids.process_id);
        rows.readying_process_row.push(by_ids.process_row);
        let stacks = world.stacks;
        let stack_id = by.and_then(|by| stacks.at(&mut self.stacks, time_ns, by, cpu));
        rows.stack_id.push(stack_id);
        let thread = &mut self.threads[index as usize];
        let slot = match thread.runs {
            true => &mut thread.next_ready,
            false => &mut thread.ready,
        };
        *slot = Some(Ready {
            time_ns,
            cpu,
            by,
            by_ids,
            by_dpc: rows.by_dpc[row],
            adjust_reason: rows.adjust_reason[row],
            adjust_increment: rows.adjust_increment[row],
            kernel_stack_not_resident: rows.kernel_stack_not_resident[row],
            process_out_of_memory: rows.process_out_of_memory[row],
            direct_switch_attempt: rows.direct_switch_attempt[row],
            stack_id,
        });
    }

    fn switch(&mut self, rows: &ContextSwitches, row: usize, world: &World<'_>) {
        let (time_ns, cpu) = (rows.time_ns[row], rows.cpu[row]);
        let (old, new) = (rows.old_thread_id[row], rows.new_thread_id[row]);
        let out = SwitchOut {
            time_ns,
            cpu,
            priority: rows.old_priority[row],
            state: rows.old_state[row],
            wait_reason: rows.old_wait_reason[row],
            wait_mode: rows.old_wait_mode[row],
            rank: rows.old_rank.get(row),
            remaining_quantum: rows.old_remaining_quantum.get(row),
            ideal_processor: rows.old_ideal_processor[row],
        };
        if self.cpus.len() <= usize::from(cpu) {
            self.cpus.resize(usize::from(cpu) + 1, None);
        }
        let (begin_ns, last_ns) = self.switched_ns.get_or_insert((time_ns, time_ns));
        *last_ns = time_ns;
        let begin_ns = *begin_ns;
        let running = self.cpus[usize::from(cpu)].unwrap_or_else(|| {
            let from_ns = self.recorded.begin_ns(cpu).unwrap_or(begin_ns);
            Running {
                start_ns: begin_ns.max(from_ns).min(time_ns),
                switch_in: None,
            }
        });
        let planned = running.switch_in.map(|s| (s.thread_id, s.thread));
        let old_index = match planned {
            Some((thread_id, index)) if thread_id == old => index,
            _ => self.index(old),
        };
        if let Some((_, planned)) = planned.filter(|(planned, _)| *planned != old) {
            self.contradictions.push(time_ns);
            // It never ran here: what made it ready still holds.
            let thread = &mut self.threads[planned as usize];
            thread.runs = false;
            thread.ready = thread.next_ready.take().or(thread.ready);
        }
        let old_ids = self.run(cpu, running, (old, old_index), time_ns, Some(out), world);
        if old != 0 {
            let thread = &mut self.threads[old_index as usize];
            thread.out = Some(out);
            thread.ready = thread.next_ready.take();
            thread.runs = false;
        }
        let new_index = self.index(new);
        if new != 0 {
            self.threads[new_index as usize].runs = true;
        }
        let stack_id = world.stacks.at(&mut self.stacks, time_ns, new, cpu);
        let switch_in = Some(SwitchIn {
            thread_id: new,
            thread: new_index,
            previous_thread_id: old,
            previous_process_row: old_ids.process_row,
            priority: rows.new_priority[row],
            priority_decrement: rows.new_priority_decrement.get(row),
            wait_ticks: rows.new_wait_time.get(row).filter(|_| new != 0),
            qos: rows.new_qos.get(row),
            previous_c_state: rows.previous_c_state.get(row),
            stack_id,
        });
        self.cpus[usize::from(cpu)] = Some(Running {
            start_ns: time_ns,
            switch_in,
        });
    }

    /// Adds the run of a thread, given by its id and its index in `threads`; says whose thread it
    /// is.
    fn run(
        &mut self,
        cpu: u16,
        running: Running,
        (thread_id, index): (u32, u32),
        end_ns: i64,
        after: Option<SwitchOut>,
        world: &World<'_>,
    ) -> ThreadIds {
        let Running {
            start_ns,
            switch_in,
        } = running;
        let thread = &mut self.threads[index as usize];
        let ids = thread.known.at(world, thread_id, start_ns);
        // Of a run that began before the trace nothing before it is known, nor of the idle
        // threads, which share an id.
        let is_told = switch_in.is_some() && thread_id != 0;
        let before = thread.out.filter(|out| is_told && out.time_ns <= start_ns);
        let ready = thread.ready;
        let mut run = Run {
            cpu,
            thread_id,
            ids,
            start_ns,
            end_ns,
            switch_in,
            before,
            ready: ready.filter(|ready| is_told && ready.time_ns <= start_ns),
            after,
            ran_unseen: false,
        };
        run.ran_unseen = self.may_have_run(&run);
        self.ended.push(run);
        ids
    }

    /// Whether switches contradicted each other while the thread was off its CPU, or some CPU's are
    /// not in the trace.
    fn may_have_run(&self, run: &Run) -> bool {
        let before = run.before.map(|out| out.time_ns);
        let Some(from) = before.or_else(|| run.since()) else {
            return false;
        };
        if from < self.complete.start || self.complete.end < run.start_ns {
            return true;
        }
        let after = self.contradictions.partition_point(|at| *at <= from);
        let found = self.contradictions.get(after);
        found.is_some_and(|at| *at <= run.start_ns)
    }
}
