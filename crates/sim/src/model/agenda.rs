//! Queue of future events of the model.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::ThreadId;
use crate::time::Time;

/// Kind of future event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A processor needs attention, for example because its current step ends.
    Processor(u16),
    /// A processor is interrupted by another processor, or has finished waking.
    Poke(u16),
    /// The clock interrupt starts the queued DPCs of a processor.
    DpcTick(u16),
    /// The profiling interrupt of a processor takes a sample.
    Sample(u16),
    /// A thread's wait reaches its time-out. The number identifies the wait; if this wait has ended, the event has no
    /// effect.
    Timer(ThreadId, u32),
    /// The next packets of a flow arrive.
    Arrival(u16),
    /// An answer to a packet of a flow arrives, with this number of bytes.
    Answer(u16, u32),
    /// A receive queue of a network adapter may interrupt again.
    Moderated(u16, u16),
    /// A disk completes its oldest transfer.
    DiskDone(u16),
    /// A device raises its next interrupt.
    Device(u16),
    /// An action of the scenario happens.
    Action(u16),
    /// The used processor time of all scheduling groups is reset to zero.
    Generation,
    /// The scan for starving threads runs.
    StarvationScan,
    /// A process starts.
    ProcessStart(u16),
    /// A thread starts.
    ThreadStart(ThreadId),
    /// The ranks of scheduling groups changed.
    Ranks,
    /// The clock of a processor is ahead by this time from now on.
    Skew(u16, Time),
    /// The machine resumes from sleep.
    Resume,
    /// The next recorded interrupt starts.
    Recorded,
    /// A recorded disk request is complete and causes the interrupt with this index.
    Requested(u32),
    /// A recorded wait of fixed length ends. The event has no effect if the wait with this number has ended.
    After(ThreadId, u32),
    /// The next recorded change of the machine happens.
    Moment,
    /// The measured time of a replay begins or ends.
    Measure,
}

/// Future events, earliest first. Events at the same time keep their order of insertion.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    entries: u64,
}

/// A future event. An earlier entry compares as greater, because the heap returns its greatest entry first.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: Time,
    nth: u64,
    due: Due,
}

impl Entry {
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.nth)
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Entry) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl Agenda {
    #[inline]
    pub(crate) fn push(&mut self, time: Time, due: Due) {
        self.entries += 1;
        let nth = self.entries;
        self.heap.push(Entry { time, nth, due });
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, Due)> {
        let Entry { time, due, .. } = self.heap.pop()?;
        Some((time, due))
    }
}
