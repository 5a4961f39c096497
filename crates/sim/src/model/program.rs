//! Programs that threads execute: compiled steps and their execution.

use std::io::{Seek, Write};
use std::rc::Rc;

use super::disk::{Purpose, Transfer};
use super::thread::State;
use super::{BodyId, Due, IDLE, Model, Readier};
use crate::log::DiskAction;
use crate::scenario::{Amount, WaitReason};
use crate::time::Time;

/// Maximum number of consecutive steps that need no processor time and no wait. The model stops a program that exceeds
/// this number, because the program would never let time pass.
const MOST_FREE_STEPS: u32 = 10_000;

/// A step of a program, with names replaced by indices.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Run(Amount),
    Sleep(Amount),
    Until(Time),
    Wait {
        object: usize,
        timeout: Option<Amount>,
        reason: WaitReason,
    },
    Set {
        object: usize,
        boost: u8,
    },
    Acquire {
        lock: usize,
        reason: WaitReason,
    },
    Release(usize),
    Transfer {
        action: DiskAction,
        bytes: u32,
        disk: usize,
        file: u32,
    },
    Fault {
        bytes: u32,
        disk: usize,
        file: u32,
    },
    /// Work after the disk read of a page fault is complete.
    FaultDone {
        bytes: u32,
        file: u32,
    },
    /// Processor time that is needed to send a packet.
    Send {
        flow: usize,
    },
    /// Transfer of the packet to the network adapter.
    Sent {
        flow: usize,
        bytes: u32,
    },
    Reply(usize),
    Resolution(Option<u32>),
    Background(bool),
    Focus(usize),
    Freeze(usize),
    Thaw(usize),
    Priority(u8),
    /// Start of a garbage collection of this generation. `None` is the end of the last garbage collection.
    Collection(Option<u8>),
    /// Change of the number of threads in the .NET thread pool. `starved` is true if the reason for the change is a
    /// starving pool.
    PoolThreads {
        threads: u32,
        starved: bool,
    },
    Mark(String),
    Yield,
    /// Start of a loop: `times` is the number of repetitions, `stop` is the end time, and `end` is the index
    /// of the step after the loop.
    Loop {
        times: Option<u32>,
        stop: Option<Time>,
        end: usize,
    },
    /// Jump to a loop's first step while repetitions are left.
    Again(usize),
    Exit,
    /// Execution of the DPCs that are queued for this processor's DPC thread.
    ThreadedDpc(usize),
    /// Execution of the thread's recorded steps.
    Recorded,
}

/// A step and the stack with which it runs.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) op: Op,
    /// Stack during the step; `None` for the thread's default stack.
    pub(crate) body: Option<BodyId>,
    /// Index of the name under which the step's duration is measured.
    pub(crate) measure: Option<usize>,
}

/// A compiled program.
#[derive(Debug, Default)]
pub(crate) struct Program(pub(crate) Vec<Instruction>);

/// Synchronisation object: an event, a semaphore, or a lock.
#[derive(Debug, Default)]
pub(crate) struct Object {
    /// Number of waits that the object can satisfy now.
    pub(crate) count: u32,
    /// Maximum of `count`. It is 1 for a lock or an event that resets itself.
    pub(crate) limit: u32,
    pub(crate) waiters: std::collections::VecDeque<super::ThreadId>,
}

impl<W: Write + Seek> Model<W> {
    /// Executes steps of the processor's thread until a step needs processor time or waits.
    pub(crate) fn run_program(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        let program = Rc::clone(&self.threads[t].program);
        for _ in 0..MOST_FREE_STEPS {
            let thread = &mut self.threads[t];
            if let Some((name, began)) = thread.measuring.take() {
                let took = self.base.ns_between(began, self.now);
                self.truth.measured(name, took);
            }
            let Some(instruction) = program.0.get(thread.next) else {
                return self.exit(c);
            };
            thread.next += 1;
            thread.body = instruction.body.unwrap_or(thread.home);
            thread.measuring = instruction.measure.map(|name| (name, self.now));
            if !self.step(c, &instruction.op) {
                return;
            }
        }
        let thread = &self.threads[t];
        self.stop_with(format!(
            "thread {} of {} executes {MOST_FREE_STEPS} steps without processor time or a wait: \
             its program would never let time pass; add a step that runs, sleeps or waits",
            thread.id, self.processes[thread.process].name
        ));
        self.threads[t].burst = self.base.ticks(1_000_000).max(1);
    }

    /// Executes one step. Returns true if the thread can execute its next step at once.
    fn step(&mut self, c: usize, op: &Op) -> bool {
        let t = self.cpus[c].thread;
        match op {
            Op::Run(amount) => {
                self.needs(t, amount);
                return false;
            }
            Op::Sleep(amount) => {
                let ns = amount.sample(&mut self.threads[t].random).0;
                return self.sleep(c, self.base.ticks(ns));
            }
            Op::Until(moment) => return *moment <= self.now || self.sleep(c, *moment - self.now),
            Op::Wait {
                object,
                timeout,
                reason,
            } => return self.wait(c, *object, timeout.as_ref(), *reason),
            Op::Set { object, boost } => self.set_object(*object, *boost, self.readier(c)),
            // A lock is an object that is set while no thread holds it.
            Op::Acquire { lock, reason } => return self.wait(c, *lock, None, *reason),
            Op::Release(lock) => self.set_object(*lock, 1, self.readier(c)),
            Op::Transfer {
                action,
                bytes,
                disk,
                file,
            } => {
                let transfer = Transfer::new(*action, *bytes, *file, Purpose::Thread(t), false);
                self.transfer(c, *disk, transfer);
                return self.block(c, WaitReason::Executive);
            }
            Op::Fault { bytes, disk, file } => {
                self.threads[t].waiting_since = self.now;
                let (read, purpose) = (DiskAction::Read, Purpose::Thread(t));
                let transfer = Transfer::new(read, *bytes, *file, purpose, true);
                self.transfer(c, *disk, transfer);
                return self.block(c, WaitReason::WrPageIn);
            }
            Op::FaultDone { bytes, file } => {
                let began = self.threads[t].waiting_since;
                self.log_hard_fault(c, began, *bytes, *file);
            }
            Op::Send { flow } => {
                let cost = self.flows[*flow].send_cost;
                self.needs(t, &cost);
                return false;
            }
            Op::Sent { flow, bytes } => self.send(c, *flow, *bytes),
            Op::Reply(flow) => self.reply(*flow),
            Op::Resolution(resolution) => self.request_resolution(c, *resolution),
            Op::Background(is) => self.set_background(self.threads[t].process, *is),
            Op::Focus(process) => self.focus(c, *process),
            Op::Freeze(process) => self.freeze(c, *process),
            Op::Thaw(process) => self.thaw(c, *process),
            Op::Priority(priority) => return self.set_base_priority(c, *priority),
            Op::Collection(generation) => self.collection(c, *generation),
            Op::PoolThreads { threads, starved } => self.pool_threads(c, *threads, *starved),
            Op::Mark(text) => self.log_mark(c, text),
            Op::Yield => {
                self.yield_processor(c);
                return self.cpus[c].thread == t;
            }
            Op::Loop { times, stop, end } => self.begin_loop(t, *times, *stop, *end),
            Op::Again(first) => self.repeat_loop(t, *first),
            Op::Exit => {
                self.exit(c);
                return false;
            }
            Op::ThreadedDpc(cpu) => return self.threaded_dpc(*cpu),
            Op::Recorded => return self.recorded_steps(c),
        }
        true
    }

    /// Takes an object if it is set. Otherwise, makes the thread wait for the object. Returns true if no wait
    /// is needed.
    fn wait(
        &mut self,
        c: usize,
        object: usize,
        timeout: Option<&Amount>,
        reason: WaitReason,
    ) -> bool {
        let t = self.cpus[c].thread;
        if self.objects[object].count > 0 {
            self.objects[object].count -= 1;
            return true;
        }
        self.objects[object].waiters.push_back(t);
        self.threads[t].waits_for = Some(object);
        if let Some(timeout) = timeout {
            let ns = timeout.sample(&mut self.threads[t].random).0;
            self.set_timer(t, self.base.ticks(ns));
        }
        self.block(c, reason)
    }

    /// Sets the base priority of the processor's thread. Returns true if the thread still runs.
    pub(crate) fn set_base_priority(&mut self, c: usize, priority: u8) -> bool {
        let t = self.cpus[c].thread;
        let thread = &mut self.threads[t];
        thread.base = priority;
        thread.foreground_boost = 0;
        thread.unusual_boost = 0;
        self.set_priority(c, t, priority);
        self.yield_to_better(c);
        self.cpus[c].thread == t
    }

    /// Starts a loop that repeats `times` times, or without limit if `times` is `None`. The loop ends at the time
    /// `stop` at the latest. If `times` is 0 or `stop` has passed, continues at the step `end`.
    fn begin_loop(
        &mut self,
        t: super::ThreadId,
        times: Option<u32>,
        stop: Option<Time>,
        end: usize,
    ) {
        let thread = &mut self.threads[t];
        if stop.is_some_and(|stop| stop <= self.now) || times == Some(0) {
            thread.next = end;
            return;
        }
        if let Some(stop) = stop {
            thread.stop = Some((stop, end, thread.loops.len()));
        }
        // The first repetition starts now, so the number of remaining repetitions is one less than `times`.
        thread.loops.push(times.map_or(u32::MAX, |times| times - 1));
    }

    /// Returns to the step `first` of the innermost loop. After the last repetition, ends the loop.
    fn repeat_loop(&mut self, t: super::ThreadId, first: usize) {
        let thread = &mut self.threads[t];
        match thread.loops.last_mut() {
            Some(left) if *left == u32::MAX => thread.next = first,
            Some(left) if *left > 0 => {
                *left -= 1;
                thread.next = first;
            }
            _ => {
                thread.loops.pop();
                let depth = thread.loops.len();
                thread
                    .stop
                    .take_if(|(_, _, stop_depth)| *stop_depth == depth);
            }
        }
    }

    /// Ends a loop whose end time has come, even in the middle of its steps.
    pub(crate) fn stop_loop(&mut self, t: super::ThreadId) {
        let thread = &mut self.threads[t];
        if let Some((_, end, depth)) = thread.stop.take() {
            thread.next = end;
            thread.burst = 0;
            thread.loops.truncate(depth);
        }
    }

    /// Sets the processor time that the thread's step needs. It is drawn from `amount`, but is at least one
    /// tick of the trace's clock.
    fn needs(&mut self, t: super::ThreadId, amount: &Amount) {
        let thread = &mut self.threads[t];
        let ns = amount.sample(&mut thread.random).0;
        thread.burst = self.base.ticks(ns).max(1);
    }

    fn sleep(&mut self, c: usize, delay: Time) -> bool {
        let t = self.cpus[c].thread;
        self.set_timer(t, delay);
        self.block(c, WaitReason::DelayExecution)
    }

    /// Schedules the clock interrupt that ends a wait of `delay` ticks.
    pub(crate) fn set_timer(&mut self, t: super::ThreadId, delay: Time) {
        let process = self.processes[self.threads[t].process].id;
        let expiry = self.clock.expiry(self.now, delay, process);
        self.agenda
            .push(expiry, Due::Timer(t, self.threads[t].wait));
    }

    /// Sets an object: readies the thread that has waited longest. If no thread waits, the object
    /// stays set.
    pub(crate) fn set_object(&mut self, object: usize, boost: u8, by: Readier) {
        match self.objects[object].waiters.pop_front() {
            Some(t) => self.end_wait(t, boost, by),
            None => {
                let object = &mut self.objects[object];
                object.count = (object.count + 1).min(object.limit);
            }
        }
    }

    /// Ends a thread's wait.
    pub(crate) fn end_wait(&mut self, t: super::ThreadId, boost: u8, by: Readier) {
        let thread = &mut self.threads[t];
        if thread.state != State::Waiting {
            return;
        }
        thread.wait = thread.wait.wrapping_add(1);
        if let Some(object) = thread.waits_for.take() {
            self.objects[object].waiters.retain(|waiter| *waiter != t);
        }
        self.ready(t, boost, by);
    }

    /// Makes the processor's thread wait and runs another thread. Returns false, because the first thread cannot
    /// execute its next step now.
    pub(crate) fn block(&mut self, c: usize, reason: WaitReason) -> bool {
        let t = self.cpus[c].thread;
        let thread = &mut self.threads[t];
        thread.state = State::Waiting;
        thread.wait_reason = reason;
        thread.waiting_since = self.now;
        self.switch(c, None, reason);
        false
    }

    fn exit(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        debug_assert_ne!(t, IDLE);
        self.threads[t].state = State::Terminated;
        self.thread_ends(c, t);
        self.switch(c, None, WaitReason::WrTerminated);
    }
}
