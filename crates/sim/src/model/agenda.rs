//! What is to happen when.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::ThreadId;
use crate::time::Time;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// What runs on a processor reaches its next point.
    Processor(u16),
    /// A processor is interrupted by another, or has woken.
    Poke(u16),
    /// The clock interrupt looks at a processor's queued DPCs.
    DpcTick(u16),
    /// The profiling interrupt of a processor.
    Sample(u16),
    /// A thread's time-out, if that wait still lasts.
    Timer(ThreadId, u32),
    /// The next packets of a flow.
    Arrival(u16),
    /// An answer to a packet of a flow, with its bytes.
    Answer(u16, u32),
    /// An adapter's queue may interrupt again.
    Moderated(u16, u16),
    /// A disk has done its oldest transfer.
    DiskDone(u16),
    /// The next interrupt of a device.
    Device(u16),
    /// An action of the scenario.
    Action(u16),
    /// The scheduling groups' use starts at zero again.
    Generation,
    /// The scan for threads that starve.
    StarvationScan,
    /// A process begins.
    ProcessStart(u16),
    /// A thread begins.
    ThreadStart(ThreadId),
    /// The ranks of groups have changed.
    Ranks,
    /// From now on a processor's clock is ahead by so much.
    Skew(u16, Time),
    /// The machine resumes.
    Resume,
}

/// What is due, earliest first; in the order of its entry within a moment.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    entries: u64,
}

/// An entry of the agenda. Earlier ones are greater, since the heap gives the greatest first.
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

    /// How much is due.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, Due)> {
        let Entry { time, due, .. } = self.heap.pop()?;
        Some((time, due))
    }
}
