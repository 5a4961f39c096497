//! Reader of one buffer at a time. It reads the bytes of the buffer, decompresses them, and lists the records
//! in time order.

use crate::buffer::{BufferRef, HEADER_SIZE};
use crate::clock::Clock;
use crate::compress::decompress;
use crate::damage::{Damage, Fault, FaultKind};
use crate::event::{BadRecord, Event, HeaderKind, Place, Record};
use crate::guid::Guid;
use crate::ids::class::LOST_EVENT;
use crate::trace::Trace;

/// Memory in bytes that a reader keeps for each of its vectors after [`BufferReader::release`]. This memory
/// is enough for all but very large buffers.
const KEPT_BYTES: usize = 1 << 20;

/// Reader of a trace's buffers. It reads one buffer after the other into the same memory.
///
/// Readers are independent. To read in parallel, use one reader per thread.
#[derive(Debug)]
pub struct BufferReader<'t> {
    trace: &'t Trace,
    buffer: Option<BufferRef>,
    stored: Vec<u8>,
    data: Vec<u8>,
    records: Vec<Record>,
    damage: Damage,
}

impl<'t> BufferReader<'t> {
    /// Creates a reader of `trace`'s buffers.
    pub fn new(trace: &'t Trace) -> BufferReader<'t> {
        BufferReader {
            trace,
            buffer: None,
            stored: Vec::new(),
            data: Vec::new(),
            records: Vec::new(),
            damage: Damage::default(),
        }
    }

    /// Reads `buffer` (one of [`Trace::buffers`]) and returns its events in time order. Events at
    /// the same time keep their order. Skips unreadable parts and records them as damage.
    pub fn read(&mut self, buffer: &BufferRef) -> Events<'_> {
        self.load(buffer);
        Events {
            reader: self,
            next: 0,
        }
    }

    /// Returns the damage in the buffers read so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the damage recorded so far and clears it.
    pub fn take_damage(&mut self) -> Damage {
        std::mem::take(&mut self.damage)
    }

    pub(crate) fn load(&mut self, buffer: &BufferRef) {
        self.buffer = Some(*buffer);
        self.records.clear();
        self.data.clear();
        if let Err(what) = self.fetch(buffer) {
            self.fault(buffer, None, what);
        }
        self.index(buffer);
    }

    /// Reads `buffer` and returns the number of its first events that have plausible times in ascending
    /// order. These events are evidence of a real trace. If the buffer has damage and there are fewer than
    /// four such events, returns 0.
    pub(crate) fn plausible_events(&mut self, buffer: &BufferRef) -> usize {
        /// Maximum time that the events of a plausible buffer can cover, in raw units. It is three years of a
        /// 10 MHz counter.
        const LONGEST: i64 = 1 << 50;
        self.load(buffer);
        let is_whole = std::mem::take(&mut self.damage).counts().is_empty();
        let timed = self.records.iter().filter(|record| {
            let bytes = self.data.get(record.offset as usize..).unwrap_or(&[]);
            record.kind != HeaderKind::UlongTime && Record::time(bytes).is_some()
        });
        let mut times = timed.map(|record| record.raw_time).peekable();
        let first = times.peek().copied().unwrap_or(0);
        let mut last = first;
        let mut count = 0;
        for time in times {
            if time <= 0 || time < last || time.saturating_sub(first) > LONGEST {
                break;
            }
            (last, count) = (time, count + 1);
        }
        if is_whole || count >= 4 { count } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of bytes of memory that the reader and its current buffer use.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.data.len() + self.records.len() * size_of::<Record>()
    }

    /// Releases the current buffer. After that, each vector keeps at most `KEPT_BYTES` of memory. The next
    /// buffer rarely needs more memory.
    pub(crate) fn release(&mut self) {
        self.buffer = None;
        self.records.clear();
        self.data.clear();
        self.stored.clear();
        self.records.shrink_to(KEPT_BYTES / size_of::<Record>());
        self.data.shrink_to(KEPT_BYTES);
        self.stored.shrink_to(KEPT_BYTES);
    }

    #[inline]
    pub(crate) fn raw_time(&self, index: usize) -> i64 {
        self.records[index].raw_time
    }

    #[inline]
    pub(crate) fn event(&self, index: usize) -> Option<Event<'_>> {
        let record = self.records.get(index)?;
        let buffer = self.buffer.as_ref()?;
        let at = record.offset as usize;
        Some(Event {
            record: self.data.get(at..at + usize::from(record.size))?,
            kind: record.kind,
            cpu: buffer.cpu,
            raw_time: record.raw_time,
            clock: self.clock(buffer),
            place: Place {
                segment: buffer.segment,
                buffer_offset: buffer.offset,
                offset: record.offset,
            },
        })
    }

    fn clock(&self, buffer: &BufferRef) -> &'t Clock {
        &self.trace.segments()[usize::from(buffer.segment)].clock
    }

    /// Reads the buffer's valid bytes, including its header, into `self.data`.
    fn fetch(&mut self, buffer: &BufferRef) -> Result<(), FaultKind> {
        let segment = &self.trace.segments()[usize::from(buffer.segment)];
        let source = self.trace.source(segment.file);
        let read = |into: &mut Vec<u8>, size: u32| {
            into.resize(size as usize, 0);
            source
                .read_at(buffer.offset, into)
                .map(|n| into.truncate(n))
        };
        if !buffer.is_compressed() {
            let missing = match read(&mut self.data, buffer.valid_size) {
                Ok(()) => u64::from(buffer.valid_size) - self.data.len() as u64,
                Err(e) => {
                    self.data.clear();
                    return Err(FaultKind::Io(e.to_string()));
                }
            };
            return if missing == 0 {
                Ok(())
            } else {
                Err(FaultKind::Truncated { missing })
            };
        }
        read(&mut self.stored, buffer.stored_size).map_err(|e| FaultKind::Io(e.to_string()))?;
        let (header, block) = self.stored.split_at(HEADER_SIZE.min(self.stored.len()));
        self.data.resize(buffer.valid_size as usize, 0);
        self.data[..header.len()].copy_from_slice(header);
        decompress(segment.compression, block, &mut self.data[HEADER_SIZE..]).map_err(|e| {
            // The output before the fault was decoded correctly, so it is kept.
            self.data.truncate(HEADER_SIZE + e.output);
            FaultKind::Decompress(e)
        })
    }

    /// Finds the records in `self.data`, the bytes of `buffer`, and sorts them by time.
    fn index(&mut self, buffer: &BufferRef) {
        let trace = self.trace;
        let segment = &trace.segments()[usize::from(buffer.segment)];
        let mut at = HEADER_SIZE;
        let mut previous = buffer.first_time;
        let mut inversion = None;
        // If fewer than 8 bytes remain, they cannot contain a record. Such bytes exist because the number of
        // valid bytes was rounded up.
        while at + 8 <= self.data.len() {
            let mut record = match Record::read(&self.data, at, previous) {
                Ok(record) => record,
                // These bytes fill the space after the last event. They occur in memory dumps and in logs
                // that were recovered after a crash.
                Err(BadRecord::UnknownMarker(u32::MAX)) => break,
                Err(bad) => {
                    let skipped = (self.data.len() - at) as u32;
                    self.fault(
                        buffer,
                        Some(at as u32),
                        FaultKind::from_bad_record(bad, skipped),
                    );
                    break;
                }
            };
            if !segment.is_plausible(record.raw_time) {
                let time = record.raw_time;
                self.fault(buffer, Some(at as u32), FaultKind::ImplausibleTime { time });
                record.raw_time = previous;
            }
            if record.raw_time < previous && !self.records.is_empty() {
                let by = previous.saturating_sub(record.raw_time);
                inversion.get_or_insert((at as u32, by));
            }
            previous = record.raw_time;
            if matches!(record.kind, HeaderKind::Full32 | HeaderKind::Full64) {
                let class = Guid::read(&self.data[at + 24..]);
                self.damage.loss_events += u64::from(class == Some(LOST_EVENT));
            }
            at += usize::from(record.size).next_multiple_of(8);
            self.records.push(record);
        }
        if let Some((offset, by)) = inversion {
            self.fault(buffer, Some(offset), FaultKind::ClockInversion { by });
            self.records.sort_by_key(|r| r.raw_time);
        }
    }

    fn fault(&mut self, buffer: &BufferRef, offset: Option<u32>, what: FaultKind) {
        let file = self.trace.segments()[usize::from(buffer.segment)].file;
        self.damage.add(Fault {
            file,
            buffer_offset: buffer.offset,
            offset,
            what,
        });
    }
}

/// The events of one buffer in time order.
#[derive(Debug)]
pub struct Events<'r> {
    reader: &'r BufferReader<'r>,
    next: usize,
}

impl<'r> Iterator for Events<'r> {
    type Item = Event<'r>;

    #[inline]
    fn next(&mut self) -> Option<Event<'r>> {
        let event = self.reader.event(self.next)?;
        self.next += 1;
        Some(event)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.reader.len() - self.next;
        (left, Some(left))
    }
}
