//! Events of all CPUs of a recording in time order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::ops::{ControlFlow, RangeInclusive};

use crate::chunk::Chunk;
use crate::damage::Damage;
use crate::event::Event;
use crate::recording::Recording;

/// Chunks of one CPU. At most one of them is in memory.
struct Stream<'r> {
    recording: &'r Recording,
    /// Chunks that are not read yet, the latest first.
    chunks: Vec<&'r Chunk>,
    chunk: Option<&'r Chunk>,
    bytes: Vec<u8>,
    /// Records of the read chunk that are not passed on yet, the latest first. Each entry has the time of a record and
    /// its place in `bytes`.
    records: Vec<(u64, usize)>,
}

impl Stream<'_> {
    /// Returns the time of the next event; `None` after the last one. Adds faults to `damage`.
    fn next_ns(
        &mut self,
        range: &RangeInclusive<u64>,
        damage: &mut Damage,
    ) -> io::Result<Option<u64>> {
        while self.records.is_empty() {
            let Some(chunk) = self.chunks.pop() else {
                return Ok(None);
            };
            if !overlaps(chunk, range) {
                continue;
            }
            self.chunk = Some(chunk);
            self.recording.read_into(chunk, &mut self.bytes)?;
            let records = &mut self.records;
            (self.recording).read_bytes(chunk, &self.bytes, damage, &mut |at, event| {
                let time_ns = event.time_ns.filter(|time_ns| range.contains(time_ns));
                records.extend(time_ns.map(|time_ns| (time_ns, at)));
            });
            records.sort_unstable_by_key(|record| Reverse(*record));
        }
        Ok(self.records.last().map(|(time_ns, _)| *time_ns))
    }

    /// Removes the next event and passes it to `each`.
    fn pass(&mut self, each: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(((_, at), chunk)) = self.records.pop().zip(self.chunk) else {
            return ControlFlow::Continue(());
        };
        let record = self.recording.record_at(&self.bytes, at);
        let event = record
            .and_then(|(record, _)| self.recording.event(record, chunk.offset + at as u64).ok());
        match event.flatten() {
            Some(event) => each(&event),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Returns true if a chunk may have events in a time range.
fn overlaps(chunk: &Chunk, range: &RangeInclusive<u64>) -> bool {
    (chunk.first_ns.zip(chunk.last_ns))
        .is_some_and(|(first, last)| first <= *range.end() && last >= *range.start())
}

impl Recording {
    /// Passes the events of a time range of the recording's clock to `each`, in time order, until `each` breaks. Events
    /// without a time are left out. Returns the faults that were found.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn read_in_order(
        &self,
        range: RangeInclusive<u64>,
        each: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>,
    ) -> io::Result<Damage> {
        let mut of_cpus: BTreeMap<Option<u32>, Vec<&Chunk>> = BTreeMap::new();
        for chunk in self.chunks() {
            of_cpus.entry(chunk.cpu).or_default().push(chunk);
        }
        let mut streams: Vec<Stream<'_>> = of_cpus
            .into_values()
            .map(|mut chunks| {
                chunks.sort_by_key(|chunk| Reverse((chunk.first_ns, chunk.offset)));
                Stream {
                    recording: self,
                    chunks,
                    chunk: None,
                    bytes: Vec::new(),
                    records: Vec::new(),
                }
            })
            .collect();
        let mut damage = Damage::default();
        let mut next = BinaryHeap::new();
        for (index, stream) in streams.iter_mut().enumerate() {
            let time_ns = stream.next_ns(&range, &mut damage)?;
            next.extend(time_ns.map(|time_ns| Reverse((time_ns, index))));
        }
        while let Some(Reverse((_, index))) = next.pop() {
            let stream = &mut streams[index];
            if stream.pass(each).is_break() {
                break;
            }
            let time_ns = stream.next_ns(&range, &mut damage)?;
            next.extend(time_ns.map(|time_ns| Reverse((time_ns, index))));
        }
        Ok(damage)
    }
}
