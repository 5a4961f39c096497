//! Reading with one blocking call per piece of a file (`pread`, or `ReadFile` with an offset), on
//! one or several threads.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

use ioring::Buffer;

use super::opening::{Access, open_all};
use super::run::{Conditions, Run};
use super::sums::Sums;
use super::watch::{ReadTime, Times, Watch};
use super::{CHUNK, FileSet, FilesError, chunks};

/// Reads all files with this many threads.
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
    // This lock is held until all threads are ready, so that starting them does not count as
    // reading.
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
    // The threads sum in parallel. The elapsed time for summing is therefore the mean of the threads' times.
    times.sum_ns = sum_ns / threads as i64;
    times.read_ns = watch.lap() - times.sum_ns;
    let reads = reads.concat();
    Ok(Run { times, sums, reads })
}

/// State that the reading threads share.
struct Reader<'r> {
    conditions: &'r Conditions<'r>,
    files: &'r [File],
    /// Index of the next file that no thread has started to read.
    next: &'r AtomicUsize,
}

/// Buffer and read times of a thread.
struct Memory {
    buffer: Buffer,
    reads: Vec<ReadTime>,
}

impl Reader<'_> {
    /// Allocates the memory for one of `threads` threads.
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
                        .map_err(FilesError::at(&file.path, "read"))?;
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

/// Reads every file once without timing. The sums serve for comparison with the measured reads.
pub(super) fn read_all(set: &FileSet) -> Result<Sums, FilesError> {
    let mut sums = Sums::new(set.count());
    let mut buffer = Buffer::new(CHUNK);
    for (number, file) in set.files().iter().enumerate() {
        let failed = |source| FilesError::at(&file.path, "read")(source);
        let open = File::open(&file.path).map_err(FilesError::at(&file.path, "open"))?;
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
