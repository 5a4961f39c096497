//! What the dispatcher does: switches, readied threads, priorities, samples, interrupts.

use std::io::{Seek, Write};

use super::payload::{Payload, Small};
use super::{EventKind, Log, Stack};
use crate::time::Time;
use crate::windows::Windows;

/// Thread 0 is each processor's idle thread.
const IDLE: u32 = 0;

/// A processor goes from one thread to another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextSwitch {
    /// The thread that runs now; 0 for idle.
    pub(crate) new: Running,
    /// The thread that ran until now; 0 for idle.
    pub(crate) old: Switched,
    /// What is left of the old thread's quantum: CPU cycles / 1024, negative when overdrawn.
    pub(crate) old_remaining_quantum: i32,
    /// Clock ticks since the new thread began to wait.
    pub(crate) new_wait_ticks: u32,
    /// The idle state that the processor was in, if it was idle.
    pub(crate) c_state: u8,
}

/// The thread that a switch is to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    /// The thread.
    pub(crate) thread: u32,
    /// Its priority, 0 to 31.
    pub(crate) priority: u8,
    /// How much of it is boost: the low nibble foreground boost, the high one any other.
    pub(crate) decrement: u8,
    /// Its quality of service, 0 to 7; logged since Windows 10.
    pub(crate) qos: u8,
}

/// The thread that a switch is from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switched {
    /// The thread.
    pub(crate) thread: u32,
    /// Its priority, 0 to 31.
    pub(crate) priority: u8,
    /// Its rank in its scheduling group.
    pub(crate) rank: u8,
    /// Why it stopped (`KWAIT_REASON`).
    pub(crate) wait_reason: u8,
    /// It waits on behalf of user code.
    pub(crate) user_wait: bool,
    /// The state that it went to (`KTHREAD_STATE`).
    pub(crate) state: u8,
    /// System-wide index of its ideal processor.
    pub(crate) ideal_processor: u16,
    /// Its quality of service, 0 to 7; logged since Windows 10.
    pub(crate) qos: u8,
}

/// A thread is made ready.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadyThread {
    /// The thread.
    pub(crate) thread: u32,
    /// 0 nothing, 1 its wait ended, 2 it was boosted.
    pub(crate) adjust_reason: u8,
    /// By how much its priority is raised.
    pub(crate) adjust_increment: i8,
    /// A DPC readied it.
    pub(crate) in_dpc: bool,
    /// Its kernel stack is paged out.
    pub(crate) stack_not_resident: bool,
    /// Its process is swapped out.
    pub(crate) process_not_resident: bool,
    /// The readying thread tries to hand its processor over.
    pub(crate) direct_switch: bool,
}

/// What a processor executed when the profile interrupt came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Address of the interrupted instruction.
    pub(crate) address: u64,
    /// The thread that ran; 0 for idle.
    pub(crate) thread: u32,
    /// It was in a DPC. Windows 7 logs it too: a real trace has it.
    pub(crate) in_dpc: bool,
    /// It was in a service routine.
    pub(crate) in_isr: bool,
    /// The thread's priority; logged since Windows 8.
    pub(crate) priority: u8,
    /// The thread's rank in its scheduling group; logged since Windows 8.
    pub(crate) rank: u8,
}

/// Sorts of deferred procedure calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DpcKind {
    /// An ordinary one.
    #[default]
    Regular,
    /// One that may run in a thread.
    Threaded,
    /// A timer's.
    Timer,
}

/// A deferred procedure call that ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dpc {
    /// What sort it is.
    pub(crate) kind: DpcKind,
    /// When it began.
    pub(crate) began: Time,
    /// Address of its routine.
    pub(crate) routine: u64,
}

/// An interrupt service routine that ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Isr {
    /// When it began.
    pub(crate) began: Time,
    /// Address of the routine.
    pub(crate) routine: u64,
    /// The interrupt's vector.
    pub(crate) vector: u16,
    /// The message of a message-signalled interrupt; `None` for a line-based one.
    pub(crate) message: Option<u32>,
    /// The routine claimed the interrupt.
    pub(crate) claimed: bool,
}

impl<W: Write + Seek> Log<W> {
    /// Logs a context switch. The stack is the new thread's, where it had stopped.
    #[inline]
    pub(crate) fn context_switch(
        &mut self,
        cpu: u16,
        time: Time,
        switch: &ContextSwitch,
        stack: Option<Stack>,
    ) {
        let (new, old) = (&switch.new, &switch.old);
        let windows = self.computer.windows;
        let flags = match windows {
            Windows::Seven => u8::from(old.user_wait),
            _ => u8::from(old.user_wait) | (old.qos & 7) << 1 | (new.qos & 7) << 4,
        };
        let mut payload = Small::new();
        payload
            .u32(new.thread)
            .u32(old.thread)
            .u8(new.priority)
            .u8(old.priority)
            .u8(if old.thread == IDLE {
                switch.c_state
            } else {
                old.rank
            })
            .u8(new.decrement)
            .u8(old.wait_reason)
            .u8(flags)
            .u8(old.state)
            .u8(old.ideal_processor as u8)
            .u32(switch.new_wait_ticks)
            .u32(switch.old_remaining_quantum as u32);
        if windows == Windows::Eleven25H2 {
            // Of unknown meaning; in real traces bit 1 is set on every switch from idle and bit 3
            // on every one to it.
            let from_idle = u32::from(old.thread == IDLE) << 1;
            payload.u32(from_idle | u32::from(new.thread == IDLE) << 3);
        }
        self.kernel(
            EventKind::ContextSwitch,
            cpu,
            time,
            None,
            payload.as_slice(),
            stack,
        );
    }

    /// Logs that a thread is made ready, by what runs on the processor. The stack is that of the
    /// thread that runs there.
    #[inline]
    pub(crate) fn ready_thread(
        &mut self,
        cpu: u16,
        time: Time,
        ready: &ReadyThread,
        stack: Option<Stack>,
    ) {
        let flags = u8::from(ready.in_dpc)
            | u8::from(ready.stack_not_resident) << 1
            | u8::from(ready.process_not_resident) << 2
            | u8::from(ready.direct_switch) << 3;
        let mut payload = Small::new();
        payload
            .u32(ready.thread)
            .u8(ready.adjust_reason)
            .u8(ready.adjust_increment as u8)
            .u8(flags)
            .u8(0);
        self.kernel(
            EventKind::ReadyThread,
            cpu,
            time,
            None,
            payload.as_slice(),
            stack,
        );
    }

    /// Logs a sample.
    #[inline]
    pub(crate) fn sample(&mut self, cpu: u16, time: Time, sample: &Sample, stack: Option<Stack>) {
        let (priority, rank) = match self.computer.windows {
            Windows::Seven => (0, 0),
            _ => (sample.priority, sample.rank),
        };
        let flags = u8::from(sample.in_dpc) | u8::from(sample.in_isr) << 1 | priority << 3;
        let mut payload = Small::new();
        payload
            .u64(sample.address)
            .u32(sample.thread)
            .u16(1)
            .u8(flags)
            .u8(rank);
        self.kernel(
            EventKind::Sample,
            cpu,
            time,
            None,
            payload.as_slice(),
            stack,
        );
    }

    /// Logs a deferred procedure call when it ends.
    #[inline]
    pub(crate) fn dpc(&mut self, cpu: u16, end: Time, dpc: &Dpc) {
        let kind = match dpc.kind {
            DpcKind::Regular => EventKind::Dpc,
            DpcKind::Threaded => EventKind::ThreadedDpc,
            DpcKind::Timer => EventKind::TimerDpc,
        };
        let mut payload = Small::new();
        payload
            .u64(self.raw(cpu, dpc.began) as u64)
            .u64(dpc.routine);
        self.kernel(kind, cpu, end, None, payload.as_slice(), None);
    }

    /// Logs an interrupt service routine when it ends.
    #[inline]
    pub(crate) fn isr(&mut self, cpu: u16, end: Time, isr: &Isr) {
        let mut payload = Small::new();
        payload
            .u64(self.raw(cpu, isr.began) as u64)
            .u64(isr.routine)
            .u8(isr.claimed.into())
            .u16(isr.vector)
            .u8(0);
        match isr.message {
            None => self.kernel(EventKind::Isr, cpu, end, None, payload.as_slice(), None),
            Some(message) => {
                payload.u32(message);
                self.kernel(
                    EventKind::MessageIsr,
                    cpu,
                    end,
                    None,
                    payload.as_slice(),
                    None,
                );
            }
        }
    }

    /// Logs that a thread's priority changes.
    #[inline]
    pub(crate) fn set_priority(
        &mut self,
        cpu: u16,
        time: Time,
        thread: u32,
        old: u8,
        new: u8,
        stack: Option<Stack>,
    ) {
        let mut payload = Small::new();
        payload.u32(thread).u8(old).u8(new).u16(0);
        self.kernel(
            EventKind::SetPriority,
            cpu,
            time,
            None,
            payload.as_slice(),
            stack,
        );
    }

    /// Logs that a starving thread, ready on `ready_on`, is raised above its old priority.
    pub(crate) fn anti_starvation(
        &mut self,
        cpu: u16,
        time: Time,
        thread: u32,
        ready_on: u16,
        old_priority: u8,
    ) {
        let mut payload = Small::new();
        payload.u32(thread).u16(ready_on).u8(old_priority).u8(0);
        self.kernel(
            EventKind::AntiStarvation,
            cpu,
            time,
            None,
            payload.as_slice(),
            None,
        );
    }
}
