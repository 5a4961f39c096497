//! Events of the dispatcher: context switches, threads that become ready, priorities, samples,
//! interrupts.

use std::io::{Seek, Write};

use super::payload::{Payload, Small};
use super::{EventKind, Log, Stack};
use crate::time::Time;
use crate::windows::Windows;

/// Thread id of each processor's idle thread.
const IDLE: u32 = 0;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextSwitch {
    /// Thread that runs now; 0 for idle.
    pub(crate) new: NewThread,
    /// Thread that ran until now; 0 for idle.
    pub(crate) old: OldThread,
    /// Remaining quantum of the old thread, in units of 1024 CPU cycles. It is negative if the
    /// thread ran longer than its quantum.
    pub(crate) old_remaining_quantum: i32,
    /// Wait time of the new thread, in nominal clock ticks (15.625 ms).
    pub(crate) new_wait_ticks: u32,
    /// Idle state (C-state) of the processor. It is logged only if the old thread is the idle
    /// thread.
    pub(crate) c_state: u8,
}

/// New thread of a context switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewThread {
    /// Thread id.
    pub(crate) thread: u32,
    /// Priority, 0 to 31.
    pub(crate) priority: u8,
    /// Boost that `priority` includes. The low four bits are the foreground boost; the high four bits are the
    /// other boosts.
    pub(crate) decrement: u8,
    /// Quality of service, 0 to 7; logged since Windows 10.
    pub(crate) qos: u8,
}

/// Old thread of a context switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OldThread {
    /// Thread id.
    pub(crate) thread: u32,
    /// Priority, 0 to 31.
    pub(crate) priority: u8,
    /// Rank of the thread in its scheduling group.
    pub(crate) rank: u8,
    /// Reason why the thread stopped, coded as `KWAIT_REASON`.
    pub(crate) wait_reason: u8,
    /// True if the thread waits in user mode.
    pub(crate) user_wait: bool,
    /// State of the thread after the switch, coded as `KTHREAD_STATE`.
    pub(crate) state: u8,
    /// System-wide index of the thread's ideal processor.
    pub(crate) ideal_processor: u16,
    /// Quality of service, 0 to 7; logged since Windows 10.
    pub(crate) qos: u8,
}

/// A thread that becomes ready.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadyThread {
    /// Thread id.
    pub(crate) thread: u32,
    /// Reason of the priority adjustment: 0 for no adjustment, 1 if the thread's wait ended, 2 if the thread
    /// was boosted.
    pub(crate) adjust_reason: u8,
    /// Increment of the thread's priority.
    pub(crate) adjust_increment: i8,
    /// True if a DPC readied the thread.
    pub(crate) in_dpc: bool,
    /// True if the thread's kernel stack is paged out.
    pub(crate) stack_not_resident: bool,
    /// True if the thread's process is swapped out.
    pub(crate) process_not_resident: bool,
    /// True if the readying thread tries to give its processor directly to the readied thread.
    pub(crate) direct_switch: bool,
}

/// A sample of the code that a processor executes, taken by the profile interrupt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Address of the interrupted instruction.
    pub(crate) address: u64,
    /// Thread that ran at the sample; 0 for idle.
    pub(crate) thread: u32,
    /// True if a DPC ran at the sample. Windows 7 logs this flag too, as a real trace shows.
    pub(crate) in_dpc: bool,
    /// True if an interrupt service routine ran at the sample.
    pub(crate) in_isr: bool,
    /// Priority of the thread; logged since Windows 8.
    pub(crate) priority: u8,
    /// Rank of the thread in its scheduling group; logged since Windows 8.
    pub(crate) rank: u8,
}

/// Kind of deferred procedure call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DpcKind {
    /// An ordinary DPC.
    #[default]
    Regular,
    /// A threaded DPC, which may run in a thread.
    Threaded,
    /// A DPC of a timer.
    Timer,
}

/// A completed deferred procedure call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dpc {
    pub(crate) kind: DpcKind,
    /// Start time of the DPC.
    pub(crate) began: Time,
    /// Address of the DPC's routine.
    pub(crate) routine: u64,
}

/// A completed interrupt service routine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Isr {
    /// Start time of the routine.
    pub(crate) began: Time,
    /// Address of the routine.
    pub(crate) routine: u64,
    /// Vector of the interrupt.
    pub(crate) vector: u16,
    /// Message number of a message-signalled interrupt; `None` for a line-based interrupt.
    pub(crate) message: Option<u32>,
    /// True if the routine claimed the interrupt.
    pub(crate) claimed: bool,
}

impl<W: Write + Seek> Log<W> {
    /// Logs a context switch, with the stack at which the new thread had stopped.
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
            // The meaning of these bits is unknown. In real traces, bit 1 is set in every switch
            // from idle, and bit 3 in every switch to idle.
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

    /// Logs that a thread becomes ready, with the stack of the thread that runs on the processor.
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

    /// Logs a deferred procedure call at its end.
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

    /// Logs an interrupt service routine at its end.
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

    /// Logs a change of a thread's priority.
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

    /// Logs the priority boost of a starving thread. The thread is in the ready queue of the processor
    /// `ready_on`.
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
