//! Context switches and ready events, in the order of time over all CPUs, become runs.

use rustc_hash::FxHashMap;

use crate::schema::Rows;
use crate::stack_index::StackCursor;
use crate::world::{KnownThread, ThreadIds, World};
use crate::{ContextSwitches, CpuRuns, ReadyThreads};

/// States of a thread that could go on: it lost the CPU without waiting for anything.
const RUNNABLE: [u8; 4] = [1, 2, 3, 7];

/// The scheduler's state at the end of a slice of time.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    /// By number; those that have switched.
    cpus: Vec<Option<Running>>,
    /// Index in `threads` of each thread that was met.
    indices: FxHashMap<u32, u32>,
    threads: Vec<Thread>,
    stacks: StackCursor,
    /// When CPUs' switches contradicted each other, rising.
    contradictions: Vec<i64>,
    /// Where runs begin whose switch-in is not in the trace.
    begin_ns: i64,
}

/// The run under way on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    start_ns: i64,
    /// What the switch-in says; unknown for a run that began before the trace.
    switch_in: Option<SwitchIn>,
}

#[derive(Clone, Copy, Debug)]
struct SwitchIn {
    thread_id: u32,
    /// Its index in [`Scheduling::threads`].
    thread: u32,
    previous_thread_id: u32,
    previous_process_row: Option<u32>,
    priority: i8,
    priority_decrement: Option<u8>,
    wait_ticks: Option<u32>,
    qos: Option<u8>,
    previous_c_state: Option<u8>,
    stack_id: Option<u32>,
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

/// A run that ends, or is under way when the trace ends.
struct Run {
    cpu: u16,
    running: Running,
    /// Who really ran.
    thread_id: u32,
    /// Its index in [`Scheduling::threads`].
    thread: u32,
    end_ns: i64,
    /// How it ended, and the thread's ideal processor.
    ended: Option<(SwitchOut, u8)>,
}

#[derive(Clone, Copy, Debug)]
struct SwitchOut {
    time_ns: i64,
    cpu: u16,
    priority: i8,
    state: u8,
    wait_reason: u8,
    wait_mode: u8,
    rank: Option<u8>,
    remaining_quantum: Option<i32>,
}

#[derive(Clone, Copy, Debug)]
struct Ready {
    time_ns: i64,
    cpu: u16,
    by: Option<u32>,
    by_ids: ThreadIds,
    by_dpc: bool,
    adjust_reason: u8,
    adjust_increment: i8,
    kernel_stack_not_resident: bool,
    process_out_of_memory: bool,
    direct_switch_attempt: bool,
    stack_id: Option<u32>,
}

impl Scheduling {
    /// Runs that were under way when recording began are taken to begin at `begin_ns`.
    pub(crate) fn new(begin_ns: i64) -> Scheduling {
        Scheduling {
            begin_ns,
            ..Scheduling::default()
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
                (None, None) => return runs,
                (Some(at), other) if other.is_none_or(|other| at < other) => {
                    self.switch(switches, switch, world, &mut runs);
                    switch += 1;
                }
                _ => {
                    self.ready(ready, readied, world);
                    readied += 1;
                }
            }
        }
    }

    /// The runs that are under way at the end of the trace, in the order of CPUs.
    pub(crate) fn finish(mut self, end_ns: i64, world: &World<'_>) -> CpuRuns {
        let mut runs = CpuRuns::default();
        for (cpu, running) in (0..).zip(std::mem::take(&mut self.cpus)) {
            if let Some(running) = running
                && let Some(SwitchIn {
                    thread_id, thread, ..
                }) = running.switch_in
            {
                let end_ns = end_ns.max(running.start_ns);
                let run = Run {
                    cpu,
                    running,
                    thread_id,
                    thread,
                    end_ns,
                    ended: None,
                };
                self.push(&mut runs, &run, world);
            }
        }
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
        let stack_id = by.and_then(|by| stacks.at(&mut self.stacks, time_ns, by));
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

    fn switch(
        &mut self,
        rows: &ContextSwitches,
        row: usize,
        world: &World<'_>,
        runs: &mut CpuRuns,
    ) {
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
        };
        if self.cpus.len() <= usize::from(cpu) {
            self.cpus.resize(usize::from(cpu) + 1, None);
        }
        let running = self.cpus[usize::from(cpu)].unwrap_or(Running {
            start_ns: self.begin_ns.min(time_ns),
            switch_in: None,
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
        let run = Run {
            cpu,
            running,
            thread_id: old,
            thread: old_index,
            end_ns: time_ns,
            ended: Some((out, rows.old_ideal_processor[row])),
        };
        let old_ids = self.push(runs, &run, world);
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
        let stack_id = world.stacks.at(&mut self.stacks, time_ns, new);
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

    /// Adds the run of a thread; says whose thread it is.
    fn push(&mut self, runs: &mut CpuRuns, run: &Run, world: &World<'_>) -> ThreadIds {
        let Run {
            cpu,
            running,
            thread_id,
            thread,
            end_ns,
            ended,
        } = *run;
        let start_ns = running.start_ns;
        let thread = &mut self.threads[thread as usize];
        let ids = thread.known.at(world, thread_id, start_ns);
        let thread = &*thread;
        // Of a run that began before the trace nothing before it is known, nor of the idle
        // threads, which share an id.
        let before = running.switch_in.is_some();
        let told = before && thread_id != 0;
        let out = thread.out.filter(|out| told && out.time_ns <= start_ns);
        let ready = thread
            .ready
            .filter(|ready| told && ready.time_ns <= start_ns);
        // A wait that ended is one; a thread that only lost its CPU was ready all the time.
        let preempted = out.is_some_and(|out| RUNNABLE.contains(&out.state));
        let since = match (ready, out) {
            (Some(ready), Some(out)) => Some(ready.time_ns.max(out.time_ns)),
            (Some(ready), None) => Some(ready.time_ns),
            (None, Some(out)) if preempted => Some(out.time_ns),
            (None, _) => None,
        };
        let waits_ns = out.and_then(|out| {
            let until = since?;
            Some(until.saturating_sub(out.time_ns))
        });
        let planned = running.switch_in.map(|switch_in| switch_in.thread_id);
        let as_planned = running.switch_in.filter(|s| s.thread_id == thread_id);

        runs.start_ns.push(start_ns);
        runs.end_ns.push(end_ns);
        runs.cpu_ns.push(end_ns.saturating_sub(start_ns));
        runs.cpu.push(cpu);
        runs.thread_id.push(thread_id);
        runs.thread_row.push(ids.thread_row);
        runs.process_id.push(ids.process_id);
        runs.process_row.push(ids.process_row);
        runs.starts_at_switch.push(before);
        runs.ends_at_switch.push(ended.is_some());
        runs.planned_thread_id
            .push(planned.filter(|planned| *planned != thread_id));
        runs.previous_out_ns.push(out.map(|out| out.time_ns));
        runs.readied_ns.push(ready.map(|ready| ready.time_ns));
        runs.ready_ns
            .push(since.map(|since| start_ns.saturating_sub(since)));
        runs.waits_ns.push(waits_ns);
        runs.since_last_ns
            .push(out.map(|out| start_ns.saturating_sub(out.time_ns)));
        runs.count_waits.push(u8::from(thread_id != 0));
        runs.ran_unseen
            .push(self.contradicted(since, out, start_ns));
        let previous = running.switch_in.map(|s| s.previous_thread_id);
        runs.previous_thread_id.push(previous);
        runs.previous_process_row
            .push(running.switch_in.and_then(|s| s.previous_process_row));
        runs.readying_thread_id.push(ready.and_then(|r| r.by));
        let by = ready.map(|ready| ready.by_ids).unwrap_or_default();
        runs.readying_thread_row.push(by.thread_row);
        runs.readying_process_id.push(by.process_id);
        runs.readying_process_row.push(by.process_row);
        runs.readying_cpu.push(ready.map(|r| r.cpu));
        runs.readied_by_dpc.push(ready.map(|r| r.by_dpc));
        runs.adjust_reason.push(ready.map(|r| r.adjust_reason));
        runs.adjust_increment
            .push(ready.map(|r| r.adjust_increment));
        runs.kernel_stack_not_resident
            .push(ready.map(|r| r.kernel_stack_not_resident));
        runs.process_out_of_memory
            .push(ready.map(|r| r.process_out_of_memory));
        runs.direct_switch_attempt
            .push(ready.map(|r| r.direct_switch_attempt));
        runs.priority.push(as_planned.map(|s| s.priority));
        runs.priority_decrement
            .push(as_planned.and_then(|s| s.priority_decrement));
        runs.wait_ticks.push(as_planned.and_then(|s| s.wait_ticks));
        runs.qos.push(as_planned.and_then(|s| s.qos));
        runs.previous_c_state
            .push(running.switch_in.and_then(|s| s.previous_c_state));
        runs.priority_out.push(ended.map(|(out, _)| out.priority));
        runs.state_out.push(ended.map(|(out, _)| out.state));
        runs.wait_reason_out
            .push(ended.map(|(out, _)| out.wait_reason));
        runs.wait_mode_out.push(ended.map(|(out, _)| out.wait_mode));
        runs.rank_out.push(ended.and_then(|(out, _)| out.rank));
        runs.remaining_quantum_out
            .push(ended.and_then(|(out, _)| out.remaining_quantum));
        runs.ideal_processor.push(ended.map(|(_, ideal)| ideal));
        runs.previous_priority_out.push(out.map(|out| out.priority));
        runs.previous_state.push(out.map(|out| out.state));
        runs.previous_wait_reason
            .push(out.map(|out| out.wait_reason));
        runs.previous_wait_mode.push(out.map(|out| out.wait_mode));
        runs.previous_rank.push(out.and_then(|out| out.rank));
        runs.previous_remaining_quantum
            .push(out.and_then(|out| out.remaining_quantum));
        runs.previous_cpu.push(out.map(|out| out.cpu));
        runs.stack_id.push(as_planned.and_then(|s| s.stack_id));
        runs.readying_stack_id.push(ready.and_then(|r| r.stack_id));
        ids
    }

    /// Whether switches contradicted each other while the thread was off its CPU.
    fn contradicted(&self, since: Option<i64>, out: Option<SwitchOut>, start_ns: i64) -> bool {
        let Some(from) = out.map(|out| out.time_ns).or(since) else {
            return false;
        };
        let after = self.contradictions.partition_point(|at| *at <= from);
        let found = self.contradictions.get(after);
        found.is_some_and(|at| *at <= start_ns)
    }
}
