//! A processor: what runs on it, what interrupts that, and when it reaches its next point.

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
    /// The thread that runs here next.
    pub(crate) standby: Option<ThreadId>,
    /// Service routines and DPCs that run, each inside the one before.
    pub(crate) running: Vec<Work>,
    /// Interrupts that wait for those of their level or above to end.
    pub(crate) pending: VecDeque<Work>,
    /// Queued DPCs.
    pub(crate) dpcs: VecDeque<Work>,
    /// Whether the queue is to be emptied as soon as it can be.
    pub(crate) dpcs_requested: bool,
    /// DPCs queued since the last clock tick counted, and the smoothed number per tick.
    pub(crate) dpc_requests: u32,
    pub(crate) dpc_rate: u32,
    pub(crate) dpc_tick: Time,
    /// DPCs that wait for this processor's DPC thread, and the object that wakes it.
    pub(crate) threaded: VecDeque<Work>,
    pub(crate) dpc_object: usize,

    /// Since when what runs now has run.
    pub(crate) since: Time,
    /// When the processor next needs attention, if nothing else happens.
    pub(crate) next: Time,
    /// The clock interrupt that ends the thread's quantum, and the end of its short slice.
    pub(crate) quantum_end: Time,
    pub(crate) slice_end: Time,

    /// The idle state, while the idle thread runs and has not been woken.
    pub(crate) asleep: bool,
    pub(crate) awake_at: Time,
    pub(crate) c_state: u8,
    pub(crate) idle_since: Time,
    /// How long idle periods last, smoothed.
    pub(crate) expected_idle: Time,
}

impl Processor {
    /// The routine that an interrupt would interrupt now: the innermost that runs, or the DPC that
    /// the processor's DPC thread has begun.
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
    /// Charges the time since the last change to what ran.
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

    /// Lets everything happen that can happen at this moment, and sets the next point.
    pub(crate) fn settle(&mut self, c: usize) {
        while self.settle_once(c) {}
        self.schedule(c);
    }

    /// One thing; false if there is none.
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
            // What runs may have changed since, or its rank.
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

    /// Works out when the processor next needs attention.
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
            // Most steps end before the quantum: no need to look for the tick that ends it.
            cpu.quantum_end = match thread.burst < left {
                true => NEVER,
                false => self.clock.next_interrupt((now + left).max(now + 1)),
            };
            let mut next = (now + thread.burst).min(cpu.quantum_end).min(cpu.slice_end);
            if let Some((stop, ..)) = thread.stop {
                next = next.min(stop);
            }
            if let Some(group) = self.processes[thread.process].group {
                // All that run its threads use it up; whoever began last looks after it.
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

    /// The idle thread found nothing to do: the processor takes the deepest idle state that pays.
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

    /// Wakes a sleeping processor, which takes its time.
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

    /// A processor is to look at what has changed: at once if it is `by` which it changed.
    pub(crate) fn poke(&mut self, c: usize) {
        self.agenda
            .push(self.now + self.ipi_delay, Due::Poke(c as u16));
    }

    /// A thread gives way to one of its priority.
    pub(crate) fn yield_processor(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        if let Some(next) = self.take_at_least(c, self.key(t)) {
            self.switch_out_ready(c, next, WaitReason::WrYieldExecution, false);
        }
    }
}
