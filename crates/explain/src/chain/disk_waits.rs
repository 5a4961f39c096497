//! Disk requests and hard faults during waits.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{DiskIoView, HardFaultsView, StoreError, Table};

use crate::ranges::{overlap, union};
use crate::thresholds::{CAUSE_PERCENT, is_share};
use crate::{Case, Evidence, Unit};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Assumed maximum length of a request, in nanoseconds. Requests are sorted by their ends, so a request that
/// began in a time range is searched up to this time after the range.
const LONGEST_NS: i64 = 120_000_000_000;

/// Disk requests and hard faults that overlap waits.
pub(crate) struct DiskWaits {
    requests: Vec<Request>,
    /// Requests of each thread, by thread id. The values are indexes of `requests`.
    by_thread: FxHashMap<u32, Vec<usize>>,
    faults: FxHashMap<u32, Vec<Range<i64>>>,
    /// True if the trace has no requests to disks.
    pub(crate) lacks_requests: bool,
}

#[derive(Clone, Debug)]
struct Request {
    range: Range<i64>,
    disk: u32,
    queue_ns: i64,
    thread_id: Option<u32>,
    process_row: Option<u32>,
}

/// Cause of a wait that a disk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FromDisk {
    /// The thread waited for its request to this disk.
    Request(u32),
    /// The thread waited for a page.
    Page,
}

impl DiskWaits {
    /// Reads the requests and faults that overlap one of the ranges.
    pub(crate) fn read(case: &Case<'_>, ranges: Vec<Range<i64>>) -> Result<DiskWaits, StoreError> {
        let mut waits = DiskWaits {
            requests: Vec::new(),
            by_thread: FxHashMap::default(),
            faults: FxHashMap::default(),
            lacks_requests: case.table(Table::DiskIo)?.rows() == 0,
        };
        let ranges = union(ranges);
        let Some((first, last)) = ranges.first().zip(ranges.last()) else {
            return Ok(waits);
        };
        let all = first.start..last.end.saturating_add(LONGEST_NS);
        let is_in = |range: &Range<i64>| {
            let at = ranges.partition_point(|one| one.end <= range.start);
            ranges.get(at).is_some_and(|one| one.start < range.end)
        };
        let table = case.table(Table::DiskIo)?;
        let columns = [
            "time_ns",
            "init_ns",
            "disk",
            "queue_ns",
            "thread_id",
            "process_row",
        ];
        for batch in case.batches(&table, all.clone(), &columns) {
            let batch = batch?;
            let view = DiskIoView::new(&batch)?;
            for row in 0..view.len() {
                let Some(init_ns) = view.init_ns.get(row) else {
                    continue;
                };
                let range = init_ns..view.time_ns[row];
                if !is_in(&range) {
                    continue;
                }
                let thread_id = view.thread_id.get(row);
                if let Some(thread_id) = thread_id {
                    let of_thread = waits.by_thread.entry(thread_id).or_default();
                    of_thread.push(waits.requests.len());
                }
                waits.requests.push(Request {
                    range,
                    disk: view.disk[row],
                    queue_ns: view.queue_ns.get(row).unwrap_or(0),
                    thread_id,
                    process_row: view.process_row.get(row),
                });
            }
        }
        let table = case.table(Table::HardFaults)?;
        let columns = ["time_ns", "start_ns", "thread_id"];
        for batch in case.batches(&table, all, &columns) {
            let batch = batch?;
            let view = HardFaultsView::new(&batch)?;
            for row in 0..view.len() {
                let range = view.start_ns.get(row).map(|start| start..view.time_ns[row]);
                if let Some(range) = range.filter(|range| is_in(range)) {
                    let of_thread = waits.faults.entry(view.thread_id[row]).or_default();
                    of_thread.push(range);
                }
            }
        }
        Ok(waits)
    }

    /// Returns the kind of disk access that lasted for at least half of the range: hard faults of the thread,
    /// or its requests to one disk.
    pub(crate) fn of_wait(&self, thread_id: u32, range: &Range<i64>) -> Option<FromDisk> {
        let half = (range.end - range.start) / 2;
        let covered = |parts: Vec<Range<i64>>| {
            let parts = parts.iter().filter_map(|part| overlap(part, range));
            let parts = union(parts.collect());
            let ns: i64 = parts.iter().map(|part| part.end - part.start).sum();
            ns > 0 && ns >= half
        };
        if let Some(faults) = self.faults.get(&thread_id)
            && covered(faults.clone())
        {
            return Some(FromDisk::Page);
        }
        let requests = self.by_thread.get(&thread_id)?.iter();
        let requests: Vec<&Request> = requests
            .map(|at| &self.requests[*at])
            .filter(|request| overlap(&request.range, range).is_some())
            .collect();
        let disk = requests.last()?.disk;
        let of_disk = requests.iter().filter(|request| request.disk == disk);
        covered(of_disk.map(|request| request.range.clone()).collect())
            .then_some(FromDisk::Request(disk))
    }

    /// Returns data about a thread's requests to a disk within the range: the number of requests, their total
    /// time, and the time that they spent in the queue. Times are in nanoseconds.
    pub(crate) fn queued(&self, thread_id: u32, disk: u32, range: &Range<i64>) -> (u64, i64, i64) {
        let of_thread = self.by_thread.get(&thread_id).into_iter().flatten();
        let requests = of_thread
            .map(|at| &self.requests[*at])
            .filter(|request| request.disk == disk && overlap(&request.range, range).is_some());
        requests.fold((0, 0, 0), |(count, all, queued), request| {
            let length = request.range.end - request.range.start;
            (
                count + 1,
                all + length,
                queued + request.queue_ns.min(length),
            )
        })
    }

    /// Returns the processes whose requests kept the disk busy within the range, except for the thread's own requests: the
    /// one with most time of the disk, and the next one if it has at least half of this time.
    pub(crate) fn fillers(&self, thread_id: u32, disk: u32, range: &Range<i64>) -> Vec<Filler> {
        let mut fillers: FxHashMap<Option<u32>, Filler> = FxHashMap::default();
        for request in &self.requests {
            // The disk works on a request after the time in the queue.
            let queued_until = request.range.start.saturating_add(request.queue_ns);
            let served = queued_until.min(request.range.end)..request.range.end;
            if request.disk == disk
                && request.thread_id != Some(thread_id)
                && let Some(served) = overlap(&served, range)
            {
                let filler = fillers.entry(request.process_row).or_insert(Filler {
                    process_row: request.process_row,
                    requests: 0,
                    served_ns: 0,
                });
                filler.requests += 1;
                filler.served_ns += served.end - served.start;
            }
        }
        let mut fillers: Vec<Filler> = fillers.into_values().collect();
        fillers.sort_unstable_by_key(|filler| (Reverse(filler.served_ns), filler.process_row));
        let most_ns = fillers.first().map_or(0, |filler| filler.served_ns);
        let is_large = |filler: &Filler| is_share(filler.served_ns, most_ns, CAUSE_PERCENT);
        fillers.retain(is_large);
        fillers.truncate(2);
        fillers
    }
}

/// Requests of a process that kept a disk busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filler {
    pub(crate) process_row: Option<u32>,
    pub(crate) requests: u64,
    /// Time for which the disk worked on the requests, in nanoseconds.
    pub(crate) served_ns: i64,
}

/// Returns evidence with the requests to a disk that were completed in the range, by process.
pub(crate) fn evidence(
    case: &Case<'_>,
    disk: u32,
    range: &Range<i64>,
) -> Result<Evidence, StoreError> {
    #[derive(Clone, Copy, Default)]
    struct Sums {
        count: u64,
        total_ns: Option<i64>,
        longest_ns: Option<i64>,
        queue_ns: Option<i64>,
    }
    let within = range.start..range.end.saturating_add(1);
    let mut processes: FxHashMap<Option<u32>, Sums> = FxHashMap::default();
    let table = case.table(Table::DiskIo)?;
    let columns = ["time_ns", "disk", "duration_ns", "queue_ns", "process_row"];
    for batch in case.batches(&table, within.clone(), &columns) {
        let batch = batch?;
        let view = DiskIoView::new(&batch)?;
        for row in 0..view.len() {
            if view.disk[row] != disk || !within.contains(&view.time_ns[row]) {
                continue;
            }
            let sums = processes.entry(view.process_row.get(row)).or_default();
            sums.count += 1;
            let add = |sum: &mut Option<i64>, ns: Option<i64>| {
                if let Some(ns) = ns {
                    *sum = Some(sum.unwrap_or(0).saturating_add(ns));
                }
            };
            add(&mut sums.total_ns, view.duration_ns.get(row));
            add(&mut sums.queue_ns, view.queue_ns.get(row));
            sums.longest_ns = sums.longest_ns.max(view.duration_ns.get(row));
        }
    }
    let mut processes: Vec<(Option<u32>, Sums)> = processes.into_iter().collect();
    processes.sort_unstable_by_key(|(row, sums)| {
        (
            std::cmp::Reverse(sums.count),
            row.map_or(u64::MAX, u64::from),
        )
    });
    let selection = Selection::new(Table::DiskIo)
        .within("time_ns", within)
        .filter(Condition::is("disk", disk))
        .group_by(&["process_row"])
        .order(&[
            Order::descending("requests"),
            Order::ascending("process_row"),
        ])
        .limit(SHOWN);
    let title = format!("Requests to disk {disk} that were completed in this time, by process");
    let (process, sum) = (Expression::Process("process_row"), Expression::Sum);
    let longest = Expression::Max("duration_ns");
    let mut evidence = Evidence::from_selection(title, selection)
        .column("process", "process", Unit::None, process)
        .column("requests", "requests", Unit::Count, Expression::Count)
        .column("total_ns", "time", Unit::Duration, sum("duration_ns"))
        .column("longest_ns", "longest", Unit::Duration, longest)
        .column("queue_ns", "in the queue", Unit::Duration, sum("queue_ns"));
    for (row, sums) in processes.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(row).map(Into::into),
            Some(sums.count.into()),
            sums.total_ns.map(Into::into),
            sums.longest_ns.map(Into::into),
            sums.queue_ns.map(Into::into),
        ]);
    }
    Ok(evidence)
}
