//! Reading through a queue with several reads in flight.

use std::fs::File;
use std::io;

use super::FilesError;
use super::chunks::{self, Chunk};
use super::opening::{Access, open_all};
use super::run::{Conditions, Run};
use super::sums::Sums;
use super::watch::{ReadTime, Times, Watch};

/// Queue of reads. Each read in flight uses a slot.
pub(super) trait ReadQueue {
    /// Returns the number of slots.
    fn slots(&self) -> usize;

    /// Queues a read of up to [`CHUNK`](super::CHUNK) bytes into a free slot.
    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()>;

    /// Submits queued reads and waits for at least `least` completions. At least `least` reads must
    /// be in flight. Appends the slot of each completed read to `done`, with its byte count or
    /// error.
    fn wait(&mut self, least: usize, done: &mut Vec<Completion>) -> io::Result<()>;

    /// Returns the first `length` bytes of a slot whose read is complete.
    fn bytes(&mut self, slot: usize, length: usize) -> io::Result<&[u8]>;
}

/// Slot of a completed read, with the result of the read: the number of bytes or the error.
pub(super) type Completion = (usize, io::Result<usize>);

/// Reads all files through the queue that `make` creates. Each wait lasts until `batch` reads are
/// complete.
pub(super) fn run<Q: ReadQueue>(
    conditions: &Conditions<'_>,
    access: Access,
    batch: usize,
    make: impl FnOnce(Vec<File>) -> Result<Q, FilesError>,
) -> Result<Run, FilesError> {
    let mut times = Times::default();
    let mut watch = Watch::start(conditions.clock);
    let files = open_all(conditions.set, access, conditions.cache)?;
    times.open_ns = watch.lap();
    let mut queue = make(files)?;
    let mut reads = Vec::with_capacity(chunks::of_set(conditions.set).count());
    times.set_up_ns = watch.lap();

    let path = |chunk: Chunk| &conditions.set.files()[chunk.file].path;
    let mut sums = Sums::new(conditions.set.count());
    let mut chunks = chunks::of_set(conditions.set);
    let mut under_way: Vec<Option<(Chunk, i64)>> = vec![None; queue.slots()];
    let mut free: Vec<usize> = (0..queue.slots()).rev().collect();
    let mut again: Vec<Chunk> = Vec::new();
    let mut done: Vec<Completion> = Vec::new();
    loop {
        while let Some(&slot) = free.last() {
            let Some(chunk) = again.pop().or_else(|| chunks.next()) else {
                break;
            };
            queue
                .queue(slot, chunk.file, chunk.offset)
                .map_err(FilesError::at(path(chunk), "read"))?;
            // The next wait submits all queued reads together, so these reads have the same start time.
            under_way[slot] = Some((chunk, watch.last_ns()));
            free.pop();
        }
        let count = under_way.len() - free.len();
        if count == 0 {
            break;
        }
        queue
            .wait(batch.min(count), &mut done)
            .map_err(|source| FilesError::Queue {
                doing: "waiting for reads",
                source,
            })?;
        times.read_ns += watch.lap();
        let end_ns = watch.last_ns();
        for (slot, result) in done.drain(..) {
            let Some((chunk, start_ns)) = under_way[slot].take() else {
                continue;
            };
            reads.push(ReadTime { start_ns, end_ns });
            free.push(slot);
            let failed = || FilesError::at(path(chunk), "read");
            let length = result.map_err(failed())?;
            let bytes = queue.bytes(slot, length).map_err(failed())?;
            sums.add(chunk.file, bytes);
            again.extend(chunk.after(length));
        }
        times.sum_ns += watch.lap();
    }
    times.read_ns += watch.lap();
    Ok(Run { times, sums, reads })
}
