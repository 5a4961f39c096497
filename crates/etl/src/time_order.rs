//! Walk over all events of a trace in time order, as a stable merge of buffers.
//!
//! A buffer joins the merge when its first event is the next event in time order. So the buffers of a CPU may
//! be in any order in the file. They may also wrap around or overlap in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::buffer::BufferRef;
use crate::damage::{Damage, Fault, FaultKind};
use crate::event::Event;
use crate::logfile::LogFileHeader;
use crate::reader::BufferReader;
use crate::trace::Trace;

/// Memory limit in bytes for the buffers that are merged at the same time. If the buffers exceed the limit, no further
/// buffer joins the merge until another buffer is finished. The events of buffers that overlap in time may then be in a
/// wrong order. The limit does not apply while fewer than two buffers per CPU are in the merge.
const HELD_BYTES: usize = 64 << 20;

/// Absolute memory limit in bytes for the buffers that are merged at the same time. This limit is enough for
/// 2,048 CPUs with two buffers of 64 KiB each, including the indexes of the buffers.
const HELD_BYTES_AT_MOST: usize = 512 << 20;

/// Sort key of events: time, then CPU, then the buffer's index in [`Trace::buffers`].
type Key = (i64, u16, u32);

/// Walk over all events in time order. It is not an [`Iterator`], because each event borrows the
/// walk.
#[derive(Debug)]
pub struct TimeOrder<'t> {
    trace: &'t Trace,
    /// Buffers that have not joined the merge yet. The earliest buffer is the last element.
    pending: Vec<Key>,
    /// Buffers in the merge, and unused slots.
    slots: Vec<Slot<'t>>,
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    /// Slot of the next events, and a sort key. The walk returns events of this slot until it reaches the sort
    /// key. The sort key belongs to the earliest event in another slot or in a pending buffer.
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

    /// Skips buffers that cannot contain events from `from_ns` to `to_ns`. Both times are in nanoseconds
    /// since the trace's start. The walk can still return events outside this range.
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
                // A CPU fills one buffer after the other. So a buffer ends near the start of the next buffer.
                // Consecutive buffers can overlap slightly. Therefore, a buffer is assumed to end at the start of the
                // second buffer after it. If threads share buffers, they fill several buffers at the same time, so the
                // end is unknown.
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

    /// Returns the next event, or `None` after the last event.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "events borrow the walk")]
    pub fn next(&mut self) -> Option<Event<'_>> {
        let (slot, index) = self.advance()?;
        self.slots[slot].reader.event(index)
    }

    /// Returns the stored size in bytes of the buffers read so far. The quotient of this size and
    /// [`Trace::size_bytes`] is the progress.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the damage in the buffers read so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Selects the next event. Returns its slot and its index in that slot's buffer.
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

    /// Selects the slot with the earliest event. Before that, reads the pending buffers that begin before this event.
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
        // If the memory limit is reached, the next pending buffer stays unread, although it begins earlier
        // than the current event. The walk then continues past the start of that buffer.
        let slot_key = self.slots[index].key(self.trace);
        let limit = if next > slot_key {
            other.min(next)
        } else {
            other
        };
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

/// Returns the time by which events are sorted. If all segments have the same clock, this is the raw time,
/// because a fast counter is finer than a nanosecond. Otherwise, this is the time in nanoseconds.
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
