//! All events of a trace in time order: a stable merge of buffers.
//!
//! A buffer joins the merge when its first event is due, so it does not matter whether the
//! buffers of a CPU follow each other in the file, wrap around, or overlap in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::buffer::BufferRef;
use crate::damage::{Damage, Fault, FaultKind};
use crate::event::Event;
use crate::logfile::LogFileHeader;
use crate::reader::BufferReader;
use crate::trace::Trace;

/// Memory for buffers held at once before overlap is no longer resolved, unless there are so many
/// CPUs that each could not hold two.
const HELD_BYTES: usize = 64 << 20;

/// The same however many CPUs there are: room for two buffers of 64 KiB, with the index of their
/// events, on each of 2,048.
const HELD_BYTES_AT_MOST: usize = 512 << 20;

/// Order of events: time, then CPU, then the buffer's number in [`Trace::buffers`].
type Key = (i64, u16, u32);

/// Walks all events in time order. Not an [`Iterator`], because each event borrows the walk.
#[derive(Debug)]
pub struct TimeOrder<'t> {
    trace: &'t Trace,
    /// Buffers not yet begun, the earliest last.
    pending: Vec<Key>,
    /// Buffers being read.
    slots: Vec<Slot<'t>>,
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    /// The slot whose events come next, and the first event of any other that must come before.
    current: Option<(usize, Key)>,
    streams: usize,
    held_bytes: usize,
    bytes_read: u64,
    last_time: i64,
    damage: Damage,
}

#[derive(Debug)]
struct Slot<'t> {
    reader: BufferReader<'t>,
    buffer: BufferRef,
    ordinal: u32,
    next: usize,
}

impl<'t> TimeOrder<'t> {
    pub(crate) fn new(trace: &'t Trace) -> TimeOrder<'t> {
        let mut pending: Vec<Key> = trace
            .buffers()
            .iter()
            .zip(0u32..)
            .map(|(b, i)| (time_key(trace, b, b.first_time), b.cpu, i))
            .collect();
        pending.sort_unstable_by_key(|key| Reverse(*key));
        let mut cpus: Vec<_> = trace.buffers().iter().map(|b| (b.segment, b.cpu)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        TimeOrder {
            trace,
            pending,
            slots: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            current: None,
            streams: cpus.len(),
            held_bytes: 0,
            bytes_read: 0,
            last_time: i64::MIN,
            damage: Damage::default(),
        }
    }

    /// Leaves out buffers that cannot hold events of the given range of nanoseconds since the
    /// trace's start. Events outside it can still come, before and after.
    pub fn within(mut self, from_ns: i64, to_ns: i64) -> TimeOrder<'t> {
        let trace = self.trace;
        let first_ns = |b: &BufferRef| {
            trace.segments()[usize::from(b.segment)]
                .clock
                .to_ns(b.first_time)
        };
        let mut keep = vec![false; trace.buffers().len()];
        for stream in trace.streams() {
            let buffers = stream.buffers();
            for (i, buffer) in buffers.iter().enumerate() {
                // A CPU fills one buffer after the other, so that a buffer ends about where the next
                // one begins; they can overlap a little, so the one after that says for sure.
                // Threads that share buffers fill several at once.
                let header = trace.segments()[usize::from(buffer.segment)]
                    .header
                    .as_ref();
                let ends = match buffers.get(i + 2) {
                    Some(later) if header.is_some_and(LogFileHeader::has_buffers_per_cpu) => {
                        first_ns(later)
                    }
                    _ => i64::MAX,
                };
                if first_ns(buffer) <= to_ns && ends >= from_ns {
                    let at = trace.buffers().partition_point(|b| {
                        (b.segment, b.offset) < (buffer.segment, buffer.offset)
                    });
                    keep[at] = true;
                }
            }
        }
        self.pending.retain(|(.., i)| keep[*i as usize]);
        self
    }

    /// The next event, or `None` after the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "events borrow the walk")]
    pub fn next(&mut self) -> Option<Event<'_>> {
        let (slot, index) = self.advance()?;
        self.slots[slot].reader.event(index)
    }

    /// Stored bytes of the buffers read so far, for progress against [`Trace::size_bytes`].
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// What the buffers read so far were found to lack.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Chooses the next event: its slot and its index there.
    #[inline]
    fn advance(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Some((index, limit)) = self.current {
                let slot = &mut self.slots[index];
                if slot.next < slot.reader.len() {
                    let time = slot.time(self.trace);
                    if (time, slot.buffer.cpu, slot.ordinal) < limit {
                        let event = slot.next;
                        slot.next += 1;
                        if time < self.last_time {
                            self.out_of_order(index, time);
                        }
                        self.last_time = time;
                        return Some((index, event));
                    }
                    let key = (time, slot.buffer.cpu, slot.ordinal);
                    self.heap.push(Reverse((key, index)));
                } else {
                    self.held_bytes -= slot.reader.held_bytes();
                    slot.reader.release();
                    self.free.push(index);
                }
                self.current = None;
            }
            self.choose()?;
        }
    }

    /// Begins the buffers that are due and takes the slot with the earliest event.
    #[cold]
    fn choose(&mut self) -> Option<()> {
        while let Some(first) = self.pending.last() {
            let due = self.heap.peek().is_none_or(|Reverse((key, _))| first < key);
            let full = self.held_bytes > HELD_BYTES && self.heap.len() >= 2 * self.streams
                || self.held_bytes > HELD_BYTES_AT_MOST;
            if !due || full && !self.heap.is_empty() {
                break;
            }
            self.begin();
        }
        let Reverse((_, index)) = self.heap.pop()?;
        let far = (i64::MAX, u16::MAX, u32::MAX);
        let other = self.heap.peek().map_or(far, |Reverse((key, _))| *key);
        let next = self.pending.last().copied().unwrap_or(far);
        // When memory for overlap is used up, the next buffer must wait for a slot.
        let held = self.slots[index].key(self.trace);
        let limit = if next > held { other.min(next) } else { other };
        self.current = Some((index, limit));
        Some(())
    }

    /// Reads the earliest pending buffer into a slot.
    fn begin(&mut self) {
        let Some((.., ordinal)) = self.pending.pop() else {
            return;
        };
        let buffer = self.trace.buffers()[ordinal as usize];
        let index = self.free.pop().unwrap_or_else(|| {
            let reader = BufferReader::new(self.trace);
            self.slots.push(Slot {
                reader,
                buffer,
                ordinal,
                next: 0,
            });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        (slot.buffer, slot.ordinal, slot.next) = (buffer, ordinal, 0);
        slot.reader.load(&buffer);
        self.damage.merge(slot.reader.take_damage());
        self.bytes_read += u64::from(buffer.stored_size);
        if slot.reader.len() == 0 {
            slot.reader.release();
            self.free.push(index);
            return;
        }
        self.held_bytes += slot.reader.held_bytes();
        self.heap.push(Reverse((slot.key(self.trace), index)));
    }

    #[cold]
    fn out_of_order(&mut self, index: usize, time: i64) {
        let slot = &self.slots[index];
        self.damage.add(Fault {
            file: self.trace.segments()[usize::from(slot.buffer.segment)].file,
            buffer_offset: slot.buffer.offset,
            offset: slot.reader.event(slot.next - 1).map(|e| e.place().offset),
            what: FaultKind::OutOfOrder {
                by: self.last_time.saturating_sub(time),
            },
        });
    }
}

impl Slot<'_> {
    #[inline]
    fn time(&self, trace: &Trace) -> i64 {
        time_key(trace, &self.buffer, self.reader.raw_time(self.next))
    }

    fn key(&self, trace: &Trace) -> Key {
        (self.time(trace), self.buffer.cpu, self.ordinal)
    }
}

/// What events are ordered by: raw time where all segments share a clock (finer than a
/// nanosecond on fast counters), else nanoseconds.
#[inline]
fn time_key(trace: &Trace, buffer: &BufferRef, raw_time: i64) -> i64 {
    if trace.has_single_clock() {
        raw_time
    } else {
        trace.segments()[usize::from(buffer.segment)]
            .clock
            .to_ns(raw_time)
    }
}
