//! Reading by one call per piece that returns when it is done: `pread`, or `ReadFile` with a position;
//! in one thread or several.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

use ioring::Buffer;

use super::method::{Conditions, Run};
use super::opening::{Access, open_all};
use super::sums::Sums;
use super::watch::{ReadTime, Times, Watch};
use super::{CHUNK, FileSet, FilesError, chunks};

/// Reads all files, `threads` of them at a time.
pub(super) fn run(conditions: &Conditions<'_>, threads: usize) -> Result<Run, FilesError> {
    let set = conditions.set;
    let mut watch = Watch::start(conditions.clock);
    let files = open_all(set, Access::Synchronous, conditions.cache)?;
    let mut times = Times {
        open_ns: watch.lap(),
        ..Times::default()
    };
    let reader = Reader {
        conditions,
        files: &files,
        next: &AtomicUsize::new(0),
    };
    if threads == 1 {
        let memory = reader.memory(1);
        times.set_up_ns = watch.lap();
        let mut run = reader.read(memory)?;
        run.times.open_ns = times.open_ns;
        run.times.set_up_ns = times.set_up_ns;
        return Ok(run);
    }
    let mut sums = Sums::new(set.count());
    let mut reads = Vec::new();
    let mut sum_ns = 0;
    // Held until all threads are there, so that starting them is not part of reading.
    let start = RwLock::new(());
    let hold = start.write().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let (reader, start) = (&reader, &start);
        let begin = |_| {
            let memory = reader.memory(threads);
            let work = move || {
                drop(start.read());
                reader.read(memory)
            };
            thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(FilesError::Thread)
        };
        let workers: Result<Vec<_>, _> = (0..threads).map(begin).collect();
        times.set_up_ns = watch.lap();
        drop(hold);
        for worker in workers? {
            let of_worker = match worker.join() {
                Ok(read) => read?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            sums.merge(&of_worker.sums);
            sum_ns += of_worker.times.sum_ns;
            reads.push(of_worker.reads);
        }
        Ok(())
    })?;
    // Threads sum side by side; of the time that passed, each one's share is their mean.
    times.sum_ns = sum_ns / threads as i64;
    times.read_ns = watch.lap() - times.sum_ns;
    let reads = reads.concat();
    Ok(Run { times, sums, reads })
}

/// What threads that read share.
struct Reader<'r> {
    conditions: &'r Conditions<'r>,
    files: &'r [File],
    /// The next file that nobody reads yet.
    next: &'r AtomicUsize,
}

/// What one thread reads into and writes down.
struct Memory {
    buffer: Buffer,
    reads: Vec<ReadTime>,
}

impl Reader<'_> {
    /// For one of so many threads.
    fn memory(&self, threads: usize) -> Memory {
        let reads = chunks::of_set(self.conditions.set).count();
        Memory {
            buffer: Buffer::new(CHUNK),
            reads: Vec::with_capacity(reads.div_ceil(threads)),
        }
    }

    /// Reads files until none is left.
    fn read(&self, memory: Memory) -> Result<Run, FilesError> {
        let Memory {
            mut buffer,
            mut reads,
        } = memory;
        let set = self.conditions.set;
        let mut sums = Sums::new(set.count());
        let mut times = Times::default();
        let mut watch = Watch::start(self.conditions.clock);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let (Some(open), Some(file)) = (self.files.get(number), set.files().get(number)) else {
                times.read_ns += watch.lap();
                return Ok(Run { times, sums, reads });
            };
            for chunk in chunks::of_file(number, file.size) {
                let mut rest = Some(chunk);
                while let Some(chunk) = rest {
                    let start_ns = watch.last_ns();
                    let length = read_at(open, &mut buffer, chunk.offset)
                        .map_err(FilesError::of(&file.path, "read"))?;
                    times.read_ns += watch.lap();
                    let end_ns = watch.last_ns();
                    reads.push(ReadTime { start_ns, end_ns });
                    sums.add(number, &buffer[..length]);
                    times.sum_ns += watch.lap();
                    rest = chunk.after(length);
                }
            }
        }
    }
}

/// What an ordinary read finds in every file; nothing is timed.
pub(super) fn read_all(set: &FileSet) -> Result<Sums, FilesError> {
    let mut sums = Sums::new(set.count());
    let mut buffer = Buffer::new(CHUNK);
    for (number, file) in set.files().iter().enumerate() {
        let failed = |source| FilesError::of(&file.path, "read")(source);
        let open = File::open(&file.path).map_err(FilesError::of(&file.path, "opened"))?;
        for chunk in chunks::of_file(number, file.size) {
            let mut rest = Some(chunk);
            while let Some(chunk) = rest {
                let length = read_at(&open, &mut buffer, chunk.offset).map_err(failed)?;
                sums.add(number, &buffer[..length]);
                rest = chunk.after(length);
            }
        }
    }
    Ok(sums)
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        #[cfg(unix)]
        let result = std::os::unix::fs::FileExt::read_at(file, buffer, offset);
        #[cfg(windows)]
        let result = std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
