//! Interrupts and deferred procedure calls (DPCs), which precede all threads.
//!
//! The service routine of an interrupt runs at once unless a routine of the same or a higher level is
//! running. It leaves longer work to a DPC, which runs after all service routines and before the processor
//! returns to its thread. The DPC queue follows the rules of "Organization of DPC Queues" in the Windows
//! driver documentation.

use std::io::{Seek, Write};

use super::disk::Transfer;
use super::{BodyId, IDLE, Model, Readier, RoutineId, Source, ThreadId};
use crate::random::Random;
use crate::scenario::Importance;
use crate::time::{NEVER, Time, TimeBase};

/// Interrupt request level of DPCs. The level of a device's interrupt is its vector / 16, the
/// processor's priority class (Intel SDM, volume 3, "Task and Processor Priorities").
const DPC_LEVEL: u8 = 2;
/// Interrupt request level of the clock.
const CLOCK_LEVEL: u8 = 13;
/// Highest interrupt request level.
const HIGHEST_LEVEL: u8 = 15;

/// Maximum number of parts of a DPC's work. A part is, for example, the work of one driver that
/// processes a packet.
pub(crate) const MAX_PARTS: usize = 12;

/// Maximum number of interrupts or DPCs that wait on a processor. If more wait, the model stops, because they arrive
/// faster than the processor can serve them.
pub(crate) const MOST_WAITING: usize = 1 << 16;

/// Kind of a service routine or DPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Service routine of a line-based interrupt, with its vector.
    LineIsr(u16),
    /// Service routine of a message-signalled interrupt, with its vector and message number.
    MessageIsr(u16, u32),
    Dpc,
    TimerDpc,
    ThreadedDpc,
    /// Handling of the clock interrupt by the kernel, which Windows does not log.
    Clock,
}

impl Kind {
    pub(crate) fn is_isr(self) -> bool {
        matches!(self, Kind::LineIsr(_) | Kind::MessageIsr(..))
    }

    fn level(self) -> u8 {
        match self {
            // The level of any vector is above that of DPCs, even if a workload has a vector that Windows never uses.
            Kind::LineIsr(vector) | Kind::MessageIsr(vector, _) => {
                ((vector >> 4) as u8).clamp(DPC_LEVEL + 1, HIGHEST_LEVEL)
            }
            Kind::Dpc | Kind::TimerDpc | Kind::ThreadedDpc => DPC_LEVEL,
            Kind::Clock => CLOCK_LEVEL,
        }
    }
}

/// Action to perform when a routine completes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// Ends a thread's wait. The number identifies the wait; if this wait has ended, the action has no effect.
    Timer(ThreadId, u32),
    /// Performs an action of the scenario.
    Action(usize),
    /// Queues the DPC of an adapter's receive queue after the service routine.
    NicDpc(usize, usize),
    /// Queues the DPC of a device after the service routine.
    DeviceDpc(usize),
    /// Queues the DPC of a disk after the service routine.
    DiskDpc(usize, Transfer),
    /// Delivers the packets of an adapter's receive queue after its DPC.
    NicDone(usize, usize),
    /// Completes the DPC of a device.
    DeviceDone(usize),
    /// Completes the DPC of a disk.
    DiskDone(usize, Transfer),
    /// Ends a part of a recorded interrupt: the index of the interrupt, and of the part.
    Recorded(u32, u32),
}

/// An execution of a service routine or DPC, queued or running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) level: u8,
    pub(crate) routine: RoutineId,
    pub(crate) body: BodyId,
    /// End of each part of the work, in ticks of execution since the start of the work.
    parts: [Time; MAX_PARTS],
    /// Total execution time of the work.
    total: Time,
    /// Remaining execution time of the work.
    pub(crate) left: Time,
    pub(crate) began: Time,
    /// Time of logged routines that interrupted this work, in nanoseconds.
    inside_ns: u64,
    /// Number of pieces into which logged routines split this work.
    pub(crate) fragments: u32,
    fragment_began: Time,
    pub(crate) then: Then,
}

impl Work {
    pub(crate) fn new(
        kind: Kind,
        routine: RoutineId,
        body: BodyId,
        takes: Time,
        then: Then,
    ) -> Work {
        let takes = takes.max(1);
        Work {
            kind,
            level: kind.level(),
            routine,
            body,
            parts: [NEVER; MAX_PARTS],
            total: takes,
            left: takes,
            began: 0,
            inside_ns: 0,
            fragments: 0,
            fragment_began: 0,
            then,
        }
    }

    /// Divides the work into parts that take the given times.
    pub(crate) fn in_parts(mut self, takes: &[Time]) -> Work {
        let mut end = 0;
        for (part, takes) in self.parts.iter_mut().zip(takes) {
            end += takes;
            *part = end;
        }
        self.total = end.max(1);
        self.left = self.total;
        self
    }

    /// Returns the index of the part that is being executed.
    pub(crate) fn part(&self) -> usize {
        // After the end of the work, the last part counts as the current part.
        let done = self.total - self.left.max(1);
        let part = self.parts.iter().position(|end| done < *end);
        part.unwrap_or(0)
    }

    /// Returns the durations of the first `count` parts of the work.
    pub(crate) fn parts(&self, count: usize) -> impl Iterator<Item = Time> {
        let end = |part: usize| self.parts[part].min(self.total);
        (0..count.min(MAX_PARTS)).map(move |part| match part {
            0 => end(0),
            _ => end(part) - end(part - 1),
        })
    }

    /// Returns the time from the routine's start to `end` in nanoseconds, without the time of logged routines
    /// that interrupted it. A reader of the trace computes the same value.
    pub(crate) fn exclusive_ns(&self, end: Time, base: TimeBase) -> u64 {
        (base.ns_between(self.began, end)).saturating_sub(self.inside_ns)
    }

    fn end_fragment(&mut self, now: Time) {
        self.fragments += u32::from(now > self.fragment_began);
    }
}

impl Source {
    /// Returns an execution of the routine with a randomly drawn duration.
    pub(crate) fn work(&self, kind: Kind, base: TimeBase, random: &mut Random, then: Then) -> Work {
        let takes = base.ticks(self.cost.sample(random).0);
        Work::new(kind, self.routine, self.body, takes, then)
    }
}

impl<W: Write + Seek> Model<W> {
    /// Interrupts a processor with a service routine or the kernel's clock work.
    pub(crate) fn interrupt(&mut self, c: usize, work: Work) {
        self.advance(c);
        self.wake(c);
        let pending = &mut self.cpus[c].pending;
        let at = pending.partition_point(|other| other.level >= work.level);
        pending.insert(at, work);
        if pending.len() > MOST_WAITING {
            self.flooded(c, "interrupts");
        }
        self.settle(c);
    }

    /// Stops the model because a processor has more work than it can do.
    pub(crate) fn flooded(&mut self, c: usize, what: &str) {
        self.stop_with(format!(
            "{MOST_WAITING} {what} wait at processor {c}: they arrive faster than it can serve \
             them; make them less frequent or cheaper"
        ));
    }

    /// Runs the kernel's clock work on a processor, and performs `then` when it completes.
    pub(crate) fn clock_work(&mut self, c: usize, then: Then) {
        let work = Work::new(Kind::Clock, 0, self.clock_body, self.timer_expiry, then);
        self.interrupt(c, work);
    }

    /// Starts a routine on a processor, which interrupts the processor's current work.
    pub(crate) fn begin(&mut self, c: usize, mut work: Work) {
        let now = self.now;
        work.began = now;
        work.fragment_began = now;
        if work.kind != Kind::Clock
            && let Some(outer) = self.cpus[c].interrupted()
        {
            outer.end_fragment(now);
        }
        self.cpus[c].running.push(work);
    }

    /// Completes the innermost routine of a processor.
    pub(crate) fn complete(&mut self, c: usize) {
        let now = self.now;
        let Some(mut work) = self.cpus[c].running.pop() else {
            return;
        };
        work.end_fragment(now);
        // The kernel's clock work is not logged, so readers count it as part of the interrupted
        // work.
        if work.kind != Kind::Clock {
            let inclusive = self.base.ns_between(work.began, now);
            if let Some(outer) = self.cpus[c].interrupted() {
                outer.fragment_began = now;
                outer.inside_ns += inclusive;
            }
        }
        self.carry_out(c, &work);
        self.log_routine(c, &work);
        self.truth_routine(c, &work);
    }

    fn carry_out(&mut self, c: usize, work: &Work) {
        let by = Readier {
            cpu: c,
            in_dpc: true,
            body: work.body,
        };
        match work.then {
            Then::Timer(t, wait) => {
                if self.threads[t].wait == wait {
                    self.end_wait(t, 0, by);
                }
            }
            Then::Action(action) => self.act(c, action, by),
            Then::NicDpc(nic, queue) => self.queue_nic_dpc(c, nic, queue),
            Then::NicDone(nic, queue) => self.nic_done(c, nic, queue, by),
            Then::DeviceDpc(device) => self.queue_device_dpc(c, device),
            Then::DeviceDone(device) => {
                if let Some(object) = self.devices[device].sets {
                    self.set_object(object, 1, by);
                }
            }
            Then::DiskDpc(disk, transfer) => self.queue_disk_dpc(c, disk, transfer),
            Then::DiskDone(disk, transfer) => self.disk_done(c, disk, transfer, by),
            Then::Recorded(interrupt, part) => self.recorded_part_ends(interrupt, part, by),
        }
    }

    /// Queues a DPC on the processor `target`, at the request of processor `c`.
    pub(crate) fn queue_dpc(&mut self, c: usize, target: usize, dpc: Work, importance: Importance) {
        let tick = self.clock.next_interrupt(self.now);
        let (depth, rate) = (self.scheduler.dpc_depth, self.scheduler.dpc_rate);
        let cpu = &mut self.cpus[target];
        if tick != cpu.dpc_tick {
            cpu.dpc_tick = tick;
            cpu.dpc_rate = cpu.dpc_rate.midpoint(cpu.dpc_requests);
            cpu.dpc_requests = 0;
        }
        cpu.dpc_requests += 1;
        match importance {
            Importance::High => cpu.dpcs.push_front(dpc),
            _ => cpu.dpcs.push_back(dpc),
        }
        let waiting = cpu.dpcs.len();
        if waiting > MOST_WAITING {
            self.flooded(target, "DPCs");
        }
        let cpu = &mut self.cpus[target];
        let is_deep = waiting > depth;
        let at_once = if target == c {
            importance != Importance::Low || is_deep || cpu.dpc_rate < rate
        } else {
            matches!(importance, Importance::MediumHigh | Importance::High) || is_deep
        };
        cpu.dpcs_requested |= at_once;
        if !at_once {
            // The next clock interrupt starts the queued DPCs.
            self.agenda
                .push(tick.max(self.now + 1), super::Due::DpcTick(target as u16));
        } else if target != c {
            self.poke(target);
        }
    }

    /// Passes a DPC to the processor's DPC thread.
    pub(crate) fn queue_threaded_dpc(&mut self, c: usize, mut dpc: Work, by: Readier) {
        dpc.kind = Kind::ThreadedDpc;
        let cpu = &mut self.cpus[c];
        cpu.threaded.push_back(dpc);
        let object = cpu.dpc_object;
        self.set_object(object, 0, by);
    }

    /// Executes a step of the DPC thread: starts the oldest DPC, or completes a DPC that has run.
    /// Returns true if the thread can execute its next step at once.
    pub(crate) fn threaded_dpc(&mut self, c: usize) -> bool {
        let now = self.now;
        let t = self.cpus[c].thread;
        let Some(dpc) = self.cpus[c].threaded.front_mut() else {
            return true;
        };
        if dpc.began == 0 {
            dpc.began = now.max(1);
            dpc.fragment_began = now;
            let (left, body) = (dpc.left, dpc.body);
            let thread = &mut self.threads[t];
            thread.burst = left;
            thread.body = body;
            // The step is repeated after the DPC has run, so that the thread can complete the DPC.
            thread.next -= 1;
            return false;
        }
        if let Some(mut dpc) = self.cpus[c].threaded.pop_front() {
            dpc.end_fragment(now);
            self.carry_out(c, &dpc);
            self.log_routine(c, &dpc);
            self.truth_routine(c, &dpc);
        }
        if !self.cpus[c].threaded.is_empty() {
            self.threads[t].next -= 1;
        }
        true
    }

    /// Returns the current work of processor `c` as the work that readies a thread.
    pub(crate) fn readier(&self, c: usize) -> Readier {
        let cpu = &self.cpus[c];
        match cpu.running.last() {
            Some(work) => Readier {
                cpu: c,
                in_dpc: true,
                body: work.body,
            },
            None => Readier {
                cpu: c,
                in_dpc: false,
                body: match cpu.thread {
                    IDLE => self.clock_body,
                    t => self.threads[t].body,
                },
            },
        }
    }
}
