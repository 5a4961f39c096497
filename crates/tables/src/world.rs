//! Who and what ids and addresses of events were: what rows are joined with.

use rustc_hash::FxHashMap;

use crate::column::{Known, Nullable};
use crate::stack_index::StackIndex;
use crate::trackers::{FileTracker, ImageTracker, ProcessTracker, ThreadTracker};
use crate::{Images, Processes, Threads};

/// What lived during the whole trace.
pub(crate) struct World<'t> {
    processes: ProcessTracker<'t>,
    threads: ThreadTracker<'t>,
    images: ImageTracker,
    image_table: &'t Images,
    /// The stacks of events.
    pub(crate) stacks: &'t StackIndex,
    /// What keys of files meant.
    pub(crate) files: &'t FileTracker,
    /// Time between a CPU's samples, as the session was set up.
    pub(crate) sampling_interval_ns: Option<i64>,
}

/// What is known of a thread at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadIds {
    /// Its row in `threads`; idle threads have none.
    pub(crate) thread_row: Option<u32>,
    /// Its process.
    pub(crate) process_id: Option<u32>,
    /// Its process's row in `processes`.
    pub(crate) process_row: Option<u32>,
}

impl<'t> World<'t> {
    /// Reads the lifetimes in the tables.
    pub(crate) fn new(
        processes: &'t Processes,
        threads: &'t Threads,
        images: &'t Images,
        stacks: &'t StackIndex,
        files: &'t FileTracker,
        sampling_interval_ns: Option<i64>,
    ) -> World<'t> {
        World {
            processes: ProcessTracker::new(processes),
            threads: ThreadTracker::new(threads),
            images: ImageTracker::new(images),
            image_table: images,
            stacks,
            files,
            sampling_interval_ns,
        }
    }
}

impl World<'_> {
    /// The rows in `processes` of the processes that had the ids.
    pub(crate) fn process_rows(&self, ids: &impl Known<u32>, times: &[i64]) -> Nullable<u32> {
        let row = |(row, time): (usize, &i64)| {
            let found = self.processes.lookup(ids.known(row)?, *time)?;
            u32::try_from(found).ok()
        };
        times.iter().enumerate().map(row).collect()
    }
}

/// What is known of the thread that has an id, until another gets that id or its process's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownThread {
    /// When that begins to hold, and when it no longer does.
    from_ns: i64,
    until_ns: i64,
    ids: ThreadIds,
}

impl KnownThread {
    /// What is known of the thread that had the id; looks it up where that is another one.
    #[inline]
    pub(crate) fn at(&mut self, world: &World<'_>, thread_id: u32, time_ns: i64) -> ThreadIds {
        if !(self.from_ns..self.until_ns).contains(&time_ns) {
            *self = look_up(world, thread_id, time_ns);
        }
        self.ids
    }
}

/// Finds threads by id.
#[derive(Debug, Default)]
pub(crate) struct ThreadFinder {
    known: FxHashMap<u32, KnownThread>,
}

impl ThreadFinder {
    /// What is known of the thread that had the id.
    #[inline]
    pub(crate) fn find(&mut self, world: &World<'_>, thread_id: u32, time_ns: i64) -> ThreadIds {
        let known = self.known.entry(thread_id).or_default();
        known.at(world, thread_id, time_ns)
    }

    /// Which rows of `threads` and `processes` the threads and processes are that rows name.
    pub(crate) fn rows(
        &mut self,
        world: &World<'_>,
        threads: &impl Known<u32>,
        processes: &impl Known<u32>,
        times: &[i64],
    ) -> (Nullable<u32>, Nullable<u32>) {
        let (thread_row, _, _) = self.whose(world, threads, times);
        (thread_row, world.process_rows(processes, times))
    }

    /// Whose the threads are that rows name: the row in `threads`, the process and its row in
    /// `processes`.
    pub(crate) fn whose(
        &mut self,
        world: &World<'_>,
        threads: &impl Known<u32>,
        times: &[i64],
    ) -> (Nullable<u32>, Nullable<u32>, Nullable<u32>) {
        let mut found = <(Nullable<u32>, Nullable<u32>, Nullable<u32>)>::default();
        for (row, time_ns) in times.iter().enumerate() {
            let ids = threads.known(row).map(|id| self.find(world, id, *time_ns));
            let ids = ids.unwrap_or_default();
            found.0.push(ids.thread_row);
            found.1.push(ids.process_id);
            found.2.push(ids.process_row);
        }
        found
    }
}

/// What is known of the thread that had the id.
fn look_up(world: &World<'_>, thread_id: u32, time_ns: i64) -> KnownThread {
    let (thread_row, from_ns, until_ns) = world.threads.lookup_span(thread_id, time_ns);
    let Some(process_id) = world.threads.process_id(thread_id, time_ns) else {
        return KnownThread {
            from_ns,
            until_ns,
            ids: ThreadIds::default(),
        };
    };
    let (process_row, from, until) = world.processes.lookup_span(process_id, time_ns);
    let ids = ThreadIds {
        thread_row: thread_row.and_then(|row| u32::try_from(row).ok()),
        process_id: Some(process_id),
        process_row: process_row.and_then(|row| u32::try_from(row).ok()),
    };
    KnownThread {
        from_ns: from_ns.max(from),
        until_ns: until_ns.min(until),
        ids,
    }
}

/// Finds images by address, remembering each as long as it is mapped.
#[derive(Debug, Default)]
pub(crate) struct ImageFinder {
    known: FxHashMap<(u32, u64), Option<Mapped>>,
}

/// A row in `images`, and from when until when it is mapped.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    from_ns: i64,
    until_ns: i64,
    row: u32,
}

/// Addresses that [`ImageFinder`] remembers at most.
const REMEMBERED: usize = 1 << 20;

impl ImageFinder {
    /// The row in `images` of the image at an address of a process, or of the kernel.
    #[inline]
    pub(crate) fn find(
        &mut self,
        world: &World<'_>,
        process_id: u32,
        address: u64,
        time_ns: i64,
    ) -> Option<u32> {
        if let Some(Some(known)) = self.known.get(&(process_id, address))
            && (known.from_ns..=known.until_ns).contains(&time_ns)
        {
            return Some(known.row);
        }
        let row = world.images.lookup(process_id, address, time_ns);
        let found = row.and_then(|row| {
            Some(Mapped {
                from_ns: world.image_table.load_ns.get(row).unwrap_or(time_ns),
                until_ns: world.image_table.unload_ns.get(row).unwrap_or(i64::MAX),
                row: u32::try_from(row).ok()?,
            })
        });
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert((process_id, address), found);
        Some(found?.row)
    }
}
