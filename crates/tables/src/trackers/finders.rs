//! All trackers of a trace, and finders. A finder stores the last results of a tracker.

use rustc_hash::FxHashMap;

use crate::Images;
use crate::column::{KnownValue, Nullable};
use crate::first_pass::FirstPass;
use crate::stack_index::StackIndex;
use crate::trackers::{FileTracker, ImageTracker, ProcessTracker, ThreadTracker};
use crate::wait_kind::StackWait;

/// All trackers of a trace. Their results are joined with rows of events.
pub struct Trackers<'t> {
    processes: ProcessTracker<'t>,
    threads: ThreadTracker<'t>,
    images: ImageTracker,
    image_table: &'t Images,
    pub(crate) stacks: &'t StackIndex,
    stack_waits: &'t [StackWait],
    pub(crate) files: &'t FileTracker,
    /// Time between two samples of a CPU in nanoseconds. The session sets this time.
    pub(crate) sampling_interval_ns: Option<i64>,
    /// Time from the trace's start to its end in nanoseconds. `None` if it is unknown.
    pub(crate) length_ns: Option<i64>,
}

/// Identity of a thread at a given time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadIds {
    /// Row in `threads`; `None` for idle threads.
    pub(crate) thread_row: Option<u32>,
    pub(crate) process_id: Option<u32>,
    /// Row of the process in `processes`.
    pub(crate) process_row: Option<u32>,
}

impl<'t> Trackers<'t> {
    /// Creates the trackers from the result of the first pass.
    pub fn new(pass: &'t FirstPass) -> Trackers<'t> {
        Trackers {
            processes: ProcessTracker::new(&pass.tables.processes),
            threads: ThreadTracker::new(&pass.tables.threads),
            images: ImageTracker::new(&pass.tables.images),
            image_table: &pass.tables.images,
            stacks: &pass.stacks,
            stack_waits: &pass.stack_waits,
            files: &pass.files,
            sampling_interval_ns: pass.sampling_interval_ns,
            length_ns: pass.length_ns,
        }
    }

    /// For each id and time, returns the row in `processes` of the process that had the id at this time.
    pub(crate) fn process_rows(&self, ids: &impl KnownValue<u32>, times: &[i64]) -> Nullable<u32> {
        let row = |(row, time): (usize, &i64)| {
            let process_row = self.processes.lookup(ids.known(row)?, *time)?;
            u32::try_from(process_row).ok()
        };
        times.iter().enumerate().map(row).collect()
    }

    /// Returns the time at which the thread in a row of `threads` started; `None` if it is unknown.
    pub(crate) fn thread_start_ns(&self, thread_row: Option<u32>) -> Option<i64> {
        self.threads.start_ns(thread_row?)
    }

    /// Returns the part of the wait's kind that a stack shows.
    pub(crate) fn stack_wait(&self, stack_id: Option<u32>) -> StackWait {
        let wait = stack_id.and_then(|stack| self.stack_waits.get(stack as usize));
        wait.copied().unwrap_or_default()
    }

    /// Looks up the thread that had an id at a given time.
    fn thread(&self, thread_id: u32, time_ns: i64) -> KnownThread {
        let (thread_row, from_ns, until_ns) = self.threads.lookup_span(thread_id, time_ns);
        let thread_row = thread_row.and_then(|row| u32::try_from(row).ok());
        let Some(process_id) = self.threads.process_id(thread_id, time_ns) else {
            return KnownThread {
                from_ns,
                until_ns,
                ids: ThreadIds {
                    thread_row,
                    ..ThreadIds::default()
                },
            };
        };
        let (process_row, from, until) = self.processes.lookup_span(process_id, time_ns);
        let ids = ThreadIds {
            thread_row,
            process_id: Some(process_id),
            process_row: process_row.and_then(|row| u32::try_from(row).ok()),
        };
        KnownThread {
            from_ns: from_ns.max(from),
            until_ns: until_ns.min(until),
            ids,
        }
    }
}

/// Identity of the thread that has an id. The identity is valid until another thread or process gets the id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownThread {
    /// Time from which the identity is valid.
    from_ns: i64,
    /// Time until which the identity is valid. This time is excluded.
    until_ns: i64,
    ids: ThreadIds,
}

impl KnownThread {
    /// Returns the identity of the thread that had the id at the given time. If the stored identity is not
    /// valid at that time, looks up the identity again.
    #[inline]
    pub(crate) fn ids_at(
        &mut self,
        trackers: &Trackers<'_>,
        thread_id: u32,
        time_ns: i64,
    ) -> ThreadIds {
        if !(self.from_ns..self.until_ns).contains(&time_ns) {
            *self = trackers.thread(thread_id, time_ns);
        }
        self.ids
    }
}

/// Three columns: rows in `threads`, process ids, and rows in `processes`.
type ThreadColumns = (Nullable<u32>, Nullable<u32>, Nullable<u32>);

/// Look-up of threads by id. It stores the last identity of each id.
#[derive(Debug, Default)]
pub struct ThreadFinder {
    known: FxHashMap<u32, KnownThread>,
}

impl ThreadFinder {
    /// Returns the identity of the thread that had the id at the given time.
    #[inline]
    pub(crate) fn find(
        &mut self,
        trackers: &Trackers<'_>,
        thread_id: u32,
        time_ns: i64,
    ) -> ThreadIds {
        let known = self.known.entry(thread_id).or_default();
        known.ids_at(trackers, thread_id, time_ns)
    }

    /// Returns the rows in `threads` for thread ids, and the rows in `processes` for process ids.
    pub(crate) fn find_rows(
        &mut self,
        trackers: &Trackers<'_>,
        threads: &impl KnownValue<u32>,
        processes: &impl KnownValue<u32>,
        times: &[i64],
    ) -> (Nullable<u32>, Nullable<u32>) {
        let (thread_row, _, _) = self.find_columns(trackers, threads, times);
        (thread_row, trackers.process_rows(processes, times))
    }

    /// Returns the identities of the threads that had the ids `threads` at the times `times`. Each id belongs
    /// to the time in the same row.
    pub(crate) fn find_columns(
        &mut self,
        trackers: &Trackers<'_>,
        threads: &impl KnownValue<u32>,
        times: &[i64],
    ) -> ThreadColumns {
        let mut columns = ThreadColumns::default();
        for (row, time_ns) in times.iter().enumerate() {
            let id = threads.known(row);
            let ids = id.map(|id| self.find(trackers, id, *time_ns));
            let ids = ids.unwrap_or_default();
            columns.0.push(ids.thread_row);
            columns.1.push(ids.process_id);
            columns.2.push(ids.process_row);
        }
        columns
    }
}

/// Look-up of images by address. The result for an address is stored. It is used again while the image is
/// mapped.
#[derive(Debug, Default)]
pub(crate) struct ImageFinder {
    known: FxHashMap<(u32, u64), Option<MappedImage>>,
}

/// A row in `images`, and the time range in which the image is mapped.
#[derive(Clone, Copy, Debug)]
struct MappedImage {
    from_ns: i64,
    until_ns: i64,
    row: u32,
}

/// Maximum number of addresses that [`ImageFinder`] stores.
const REMEMBERED: usize = 1 << 20;

impl ImageFinder {
    /// Returns the row in `images` of the image at an address. The address belongs to a process or to the
    /// kernel.
    #[inline]
    pub(crate) fn find(
        &mut self,
        trackers: &Trackers<'_>,
        process_id: u32,
        address: u64,
        time_ns: i64,
    ) -> Option<u32> {
        if let Some(Some(known)) = self.known.get(&(process_id, address))
            && (known.from_ns..=known.until_ns).contains(&time_ns)
        {
            return Some(known.row);
        }
        let images = trackers.image_table;
        let row = trackers.images.lookup(process_id, address, time_ns);
        let mapped = row.and_then(|row| {
            Some(MappedImage {
                from_ns: images.load_ns.get(row).unwrap_or(time_ns),
                until_ns: images.unload_ns.get(row).unwrap_or(i64::MAX),
                row: u32::try_from(row).ok()?,
            })
        });
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert((process_id, address), mapped);
        Some(mapped?.row)
    }
}
