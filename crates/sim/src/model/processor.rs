//! A processor: its thread, its interrupts, and the time at which it next needs attention.

use std::collections::VecDeque;
use std::io::{Seek, Write};

use super::interrupt::Kind;
use super::interrupt::Work;
use super::{Due, IDLE, Model, ThreadId};
use crate::scenario::WaitReason;
use crate::time::{NEVER, Time};

/// A logical processor.
#[derive(Debug)]
pub(crate) struct Processor {
    pub(crate) thread: ThreadId,
    /// Thread that the processor runs next.
    pub(crate) standby: Option<ThreadId>,
    /// Service routines and DPCs that have started. Each of them was interrupted by the next one in the list.
    pub(crate) running: Vec<Work>,
    /// Interrupts that wait because a routine of the same or a higher level runs.
    pub(crate) pending: VecDeque<Work>,
    /// DPCs that wait to run on the processor.
    pub(crate) dpcs: VecDeque<Work>,
    /// True if the processor must run its queued DPCs as soon as possible.
    pub(crate) dpcs_requested: bool,
    /// Number of DPCs queued since the last clock tick.
    pub(crate) dpc_requests: u32,
    /// Smoothed number of DPCs queued per clock tick.
    pub(crate) dpc_rate: u32,
    pub(crate) dpc_tick: Time,
    /// DPCs that wait for this processor's DPC thread.
    pub(crate) threaded: VecDeque<Work>,
    /// Object that wakes this processor's DPC thread.
    pub(crate) dpc_object: usize,

    /// Time up to which processor time is already charged to threads and routines.
    pub(crate) since: Time,
    /// Time at which the processor next needs attention, if nothing else happens.
    pub(crate) next: Time,
    /// Time of the clock interrupt that ends the thread's quantum.
    pub(crate) quantum_end: Time,
    /// End of the thread's short time slice.
    pub(crate) slice_end: Time,

    /// True while the processor sleeps: it runs the idle thread, and no event has woken it.
    pub(crate) asleep: bool,
    pub(crate) awake_at: Time,
    pub(crate) c_state: u8,
    pub(crate) idle_since: Time,
    /// Smoothed duration of the processor's idle periods, as a prediction of the next one.
    pub(crate) expected_idle: Time,
}

impl Processor {
    /// Returns the work that an interrupt would interrupt now. It is the innermost running routine, or the
    /// DPC that the processor's DPC thread has started.
    pub(crate) fn interrupted(&mut self) -> Option<&mut Work> {
        let threaded = self.threaded.front_mut().filter(|dpc| dpc.began > 0);
        self.running.last_mut().or(threaded)
    }

    pub(crate) fn new() -> Processor {
        Processor {
            thread: IDLE,
            standby: None,
            running: Vec::new(),
            pending: VecDeque::new(),
            dpcs: VecDeque::new(),
            dpcs_requested: false,
            dpc_requests: 0,
            dpc_rate: 0,
            dpc_tick: 0,
            threaded: VecDeque::new(),
            dpc_object: 0,
            since: 0,
            next: NEVER,
            quantum_end: NEVER,
            slice_end: NEVER,
            asleep: false,
            awake_at: 0,
            c_state: 0,
            idle_since: 0,
            expected_idle: 0,
        }
    }
}

impl<W: Write + Seek> Model<W> {
    /// Charges the time since the last call for this processor to the processor's current work.
    pub(crate) fn advance(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        let elapsed = self.now - cpu.since;
        if elapsed == 0 {
            return;
        }
        cpu.since = self.now;
        let used = &mut self.truth.processors[c];
        if let Some(work) = cpu.running.last_mut() {
            work.left = work.left.saturating_sub(elapsed);
            *match work.kind {
                Kind::LineIsr(_) | Kind::MessageIsr(..) => &mut used.isrs,
                Kind::Dpc | Kind::TimerDpc | Kind::ThreadedDpc => &mut used.dpcs,
                Kind::Clock => &mut used.clock,
            } += elapsed;
        } else if cpu.thread == IDLE {
            used.idle += elapsed;
        } else {
            used.threads += elapsed;
            let thread = &mut self.threads[cpu.thread];
            thread.burst = thread.burst.saturating_sub(elapsed);
            thread.quantum -= elapsed as i64;
            thread.cpu_time += elapsed;
            let (process, priority) = (thread.process, thread.priority);
            let mut rank = 0;
            if let Some(group) = self.processes[process].group {
                self.groups[group].used += elapsed;
                rank = self.groups[group].rank;
            }
            for window in &mut self.truth.windows[1..] {
                let inside = window.overlap(self.now - elapsed, self.now);
                if inside > 0 {
                    window.processes[process] += inside;
                    *window.priorities.entry((rank, priority)).or_default() += inside;
                }
            }
        }
    }

    /// Performs all actions that are due on the processor, and computes when it next needs
    /// attention.
    pub(crate) fn settle(&mut self, c: usize) {
        while self.settle_once(c) {}
        self.schedule(c);
    }

    /// Performs one action that is due on the processor. Returns false if no action is due.
    fn settle_once(&mut self, c: usize) -> bool {
        let now = self.now;
        let cpu = &mut self.cpus[c];
        if now < cpu.awake_at {
            return false;
        }
        let level = cpu.running.last().map_or(0, |work| work.level);
        if cpu.pending.front().is_some_and(|next| next.level > level)
            && let Some(next) = cpu.pending.pop_front()
        {
            self.begin(c, next);
            return true;
        }
        if let Some(work) = cpu.running.last() {
            if work.left == 0 {
                self.complete(c);
                return true;
            }
            return false;
        }
        if cpu.dpcs_requested || cpu.thread == IDLE {
            if let Some(dpc) = cpu.dpcs.pop_front() {
                self.begin(c, dpc);
                return true;
            }
            cpu.dpcs_requested = false;
        }
        let t = cpu.thread;
        if let Some(next) = cpu.standby.take() {
            // After the standby thread was chosen, the running thread or its rank may have changed.
            if self.key(next) < self.key(t) {
                self.preempt(c, next);
            } else {
                self.place(next, true, c);
            }
            return true;
        }
        if t == IDLE {
            if !cpu.asleep {
                self.fall_asleep(c);
            }
            return false;
        }
        let thread = &self.threads[t];
        if thread.frozen {
            self.suspend(c);
        } else if thread.stop.is_some_and(|(stop, ..)| stop <= now) {
            self.stop_loop(t);
        } else if let Some(group) = self.processes[thread.process].group
            && self.group_changed(group)
        {
            self.rank_changed(c, group);
        } else if self.threads[t].burst == 0 {
            self.run_program(c);
        } else if self.threads[t].quantum <= 0 && self.cpus[c].quantum_end <= now {
            self.end_quantum(c);
        } else if self.cpus[c].slice_end <= now {
            self.end_slice(c);
        } else {
            return false;
        }
        true
    }

    /// Computes the time at which the processor next needs attention.
    pub(crate) fn schedule(&mut self, c: usize) {
        let now = self.now;
        let cpu = &mut self.cpus[c];
        let next = if now < cpu.awake_at {
            cpu.awake_at
        } else if let Some(work) = cpu.running.last() {
            now + work.left
        } else if cpu.thread == IDLE {
            NEVER
        } else {
            let thread = &self.threads[cpu.thread];
            let left = thread.quantum.max(0) as Time;
            // Most steps end before the quantum ends. In this case, the time of the quantum's end is not
            // needed.
            cpu.quantum_end = if thread.burst < left {
                NEVER
            } else {
                self.clock.next_interrupt((now + left).max(now + 1))
            };
            let mut next = (now + thread.burst).min(cpu.quantum_end).min(cpu.slice_end);
            if let Some((stop, ..)) = thread.stop {
                next = next.min(stop);
            }
            if let Some(group) = self.processes[thread.process].group {
                // All processors that run threads of the group share the remaining time of the group. Each processor
                // divides this time by the number of processors that run threads of the group at the moment. The
                // processor that is scheduled last counts all of them, so its time is exact.
                let users = self.users_of(group).count().max(1) as Time;
                next = next.min(now + self.groups[group].room().div_ceil(users));
            }
            next
        };
        if next != self.cpus[c].next {
            self.cpus[c].next = next;
            if next != NEVER {
                self.agenda.push(next, Due::Processor(c as u16));
            }
        }
    }

    /// Enters the deepest idle state (C-state) that is worthwhile for the expected idle time.
    /// Called when the idle thread finds no work.
    fn fall_asleep(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        cpu.asleep = true;
        cpu.idle_since = self.now;
        let deepest = self
            .c_states
            .iter()
            .rposition(|(residency, _)| *residency <= cpu.expected_idle);
        cpu.c_state = deepest.unwrap_or(0) as u8;
    }

    /// Wakes a sleeping processor. The time to wake is the latency of the processor's idle state.
    pub(crate) fn wake(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        if !cpu.asleep {
            return;
        }
        cpu.asleep = false;
        let was_idle = self.now - cpu.idle_since;
        cpu.expected_idle = (3 * cpu.expected_idle + was_idle) / 4;
        let latency = self
            .c_states
            .get(usize::from(cpu.c_state))
            .map_or(0, |(_, latency)| *latency);
        cpu.awake_at = self.now + latency;
    }

    /// Sends an interrupt that makes a processor look for changes.
    pub(crate) fn poke(&mut self, c: usize) {
        self.agenda
            .push(self.now + self.ipi_delay, Due::Poke(c as u16));
    }

    /// Yields the processor to the best ready thread of its queues, if the key of that thread is not greater than the
    /// key of the running thread.
    pub(crate) fn yield_processor(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        if let Some(next) = self.take_at_least(c, self.key(t)) {
            self.switch_out_ready(c, next, WaitReason::WrYieldExecution, false);
        }
    }
}
