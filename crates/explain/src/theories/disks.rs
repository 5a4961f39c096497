//! Theory: disks were slow.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{DiskIoView, StoreError, Table};

use crate::thresholds::{DISK_REQUESTS, SLOW_DISK_NS, SLOW_REQUEST_NS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Subject, Theory, Unit, counted, duration,
    grouped,
};

/// Theory about slow requests to disks.
pub(crate) struct Disks;

static ABOUT: About = About {
    id: "disks",
    name: "slow disks",
    question: "Did requests to disks take long, or queue?",
    tables: &[Table::DiskIo],
    sources: &[],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Maximum number of processes that a finding names.
const WAITING: usize = 3;
/// Remedy on Linux if requests wait before they go to the disk.
const LIMITS: &str = "Find the programs that fill the queue (`laglab diskio`), and the limits that let requests wait: \
                      io.max and io.latency of cgroups (blkio.throttle.* in version 1), ionice, and the disk's \
                      scheduler (/sys/block/*/queue/scheduler)";

#[derive(Clone, Copy, Default)]
struct Requests {
    count: u64,
    known: u64,
    bytes: u64,
    /// Sum and maximum of the times in the table, in nanoseconds.
    stored: (i64, i64),
    /// Sum of the times without suspend gaps, in nanoseconds.
    total_ns: i64,
    /// Longest time without suspend gaps, in nanoseconds.
    longest_ns: i64,
    queue_ns: Option<i64>,
    /// Requests that took `SLOW_REQUEST_NS` or longer in the table.
    stored_slow: Slow,
    /// Requests that took `SLOW_REQUEST_NS` or longer without suspend gaps.
    slow: Slow,
}

/// Slow requests of a disk.
#[derive(Clone, Copy, Default)]
struct Slow {
    count: u64,
    total_ns: i64,
    /// Time that the slow requests spent in the queue, in nanoseconds, if it is known.
    queue_ns: Option<i64>,
    /// Number of slow requests for which the disk itself needed `SLOW_REQUEST_NS` or longer, without the time
    /// in the queue.
    served: u64,
}

impl Slow {
    fn add(&mut self, duration_ns: i64, queue_ns: Option<i64>) {
        if duration_ns >= SLOW_REQUEST_NS {
            self.count += 1;
            self.total_ns = self.total_ns.saturating_add(duration_ns);
            if let Some(queue_ns) = queue_ns {
                let sum = self.queue_ns.get_or_insert(0);
                *sum = sum.saturating_add(queue_ns);
                self.served += u64::from(duration_ns - queue_ns >= SLOW_REQUEST_NS);
            }
        }
    }
}

impl Requests {
    fn mean_ns(&self) -> i64 {
        self.total_ns / i64::try_from(self.known).unwrap_or(i64::MAX).max(1)
    }
}

impl Theory for Disks {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let disks = requests_by_disk(case)?;
        let Some((_, most)) = disks.first() else {
            let what = "there are no disk requests: none were made, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        };
        let evidence = by_disk(&disks);
        // A few slow requests matter, even if many fast requests keep the mean low.
        let with_slow = (disks.iter())
            .filter(|(_, requests)| requests.slow.count > 0)
            .min_by_key(|(disk, requests)| (-requests.slow.total_ns, *disk));
        if let Some((disk, requests)) = with_slow {
            let finding = slow_requests(case, *disk, requests, evidence)?;
            return Ok(Outcome::For(vec![finding]));
        }
        let is_slow = |(_, requests): &&(u32, Requests)| {
            requests.known >= DISK_REQUESTS && requests.mean_ns() >= SLOW_DISK_NS
        };
        Ok(match disks.iter().find(is_slow) {
            Some((disk, requests)) => {
                Outcome::For(vec![slow_disk(case, *disk, requests, evidence)?])
            }
            None => {
                let because = format!(
                    "no disk with {DISK_REQUESTS} or more requests took {} or longer on average; the disk with the most \
                     request time took {} on average for {}, {} at most",
                    duration(SLOW_DISK_NS),
                    duration(most.mean_ns()),
                    counted(most.known, "request", "requests"),
                    duration(most.longest_ns)
                );
                Outcome::Against(because, vec![evidence])
            }
        })
    }
}

/// Sums the requests of each disk. The disk with most request time comes first.
fn requests_by_disk(case: &Case<'_>) -> Result<Vec<(u32, Requests)>, StoreError> {
    let mut disks: FxHashMap<u32, Requests> = FxHashMap::default();
    let table = case.table(Table::DiskIo)?;
    let columns = ["time_ns", "disk", "duration_ns", "queue_ns", "size_bytes"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = DiskIoView::new(&batch)?;
        for row in 0..view.len() {
            let disk = disks.entry(view.disk[row]).or_default();
            disk.count += 1;
            disk.bytes += u64::from(view.size_bytes.get(row).unwrap_or(0));
            if let Some(ns) = view.duration_ns.get(row) {
                let queue_ns = view.queue_ns.get(row);
                let end = view.time_ns[row];
                let gaps = &case.survey.suspend_gaps;
                let awake_ns = ns - gaps.asleep_ns(&(end.saturating_sub(ns)..end));
                disk.known += 1;
                disk.stored.0 = disk.stored.0.saturating_add(ns);
                disk.stored.1 = disk.stored.1.max(ns);
                disk.total_ns = disk.total_ns.saturating_add(awake_ns);
                disk.longest_ns = disk.longest_ns.max(awake_ns);
                disk.stored_slow.add(ns, queue_ns);
                disk.slow
                    .add(awake_ns, queue_ns.map(|queue_ns| queue_ns.min(awake_ns)));
            }
            if let Some(ns) = view.queue_ns.get(row) {
                disk.queue_ns = Some(disk.queue_ns.unwrap_or(0).saturating_add(ns));
            }
        }
    }
    let mut disks: Vec<(u32, Requests)> = disks.into_iter().collect();
    disks.sort_by_key(|(disk, requests)| (requests.known == 0, -requests.stored.0, *disk));
    Ok(disks)
}

fn by_disk(disks: &[(u32, Requests)]) -> Evidence {
    let selection = Selection::new(Table::DiskIo)
        .group_by(&["disk"])
        .order(&[Order::descending("total_ns"), Order::ascending("disk")])
        .limit(SHOWN);
    let (sum, longest) = (Expression::Sum, Expression::Max("duration_ns"));
    let evidence = Evidence::from_selection("Requests by disk", selection)
        .stored("disk", "disk", Unit::None)
        .column("requests", "requests", Unit::Count, Expression::Count)
        .column("size_bytes", "size", Unit::Bytes, sum("size_bytes"))
        .column("total_ns", "time", Unit::Duration, sum("duration_ns"))
        .column("longest_ns", "longest", Unit::Duration, longest)
        .column("queue_ns", "in the queue", Unit::Duration, sum("queue_ns"));
    let shown = disks.iter().take(SHOWN);
    shown.fold(evidence, |evidence, (disk, requests)| {
        let known = |ns: i64| (requests.known > 0).then(|| ns.into());
        evidence.row([
            Some((*disk).into()),
            Some(requests.count.into()),
            Some(requests.bytes.into()),
            known(requests.stored.0),
            known(requests.stored.1),
            requests.queue_ns.map(Into::into),
        ])
    })
}

/// Returns the finding about a disk whose requests are slow on average.
fn slow_disk(
    case: &Case<'_>,
    disk: u32,
    requests: &Requests,
    evidence: Evidence,
) -> Result<Finding, StoreError> {
    let sentence = format!(
        "Requests to {} took long: {} requests took {} on average, {} at most{}.",
        case.disk(disk),
        grouped(requests.known),
        duration(requests.mean_ns()),
        duration(requests.longest_ns),
        requests.queue_ns.map_or_else(String::new, |ns| format!(
            ", {} of this time in the queue",
            crate::percent(ns, requests.total_ns)
        ))
    );
    let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence)
        .subjects([Subject::Disk { number: disk }])
        .subjects(waiting(case, disk, 0)?)
        .with(evidence)
        .remedy(
            "Find the programs that make these requests (`laglab diskio`), and check whether \
             the disk is fast enough: above 25 ms per request, programs that wait for it feel \
             slow",
        );
    let is_mostly_queued = requests
        .queue_ns
        .is_some_and(|ns| ns > requests.total_ns / 2);
    if case.is_linux() && is_mostly_queued {
        finding = finding.remedy(LIMITS);
    }
    Ok(with_doubt(finding, case, requests))
}

/// Adds a doubt if the sum of the requests' times exceeds the elapsed time.
fn with_doubt(finding: Finding, case: &Case<'_>, requests: &Requests) -> Finding {
    let span = &case.survey.span;
    if requests.total_ns > span.end - span.start {
        finding.doubt("Requests overlap, so the sum of their times exceeds the elapsed time")
    } else {
        finding
    }
}

/// Returns the finding about a disk that has some very slow requests.
fn slow_requests(
    case: &Case<'_>,
    disk: u32,
    requests: &Requests,
    all: Evidence,
) -> Result<Finding, StoreError> {
    let slow = &requests.slow;
    let sentence = format!(
        "{} of {} requests to {} took {} or longer, {} at most.",
        grouped(slow.count),
        grouped(requests.known),
        case.disk(disk),
        duration(SLOW_REQUEST_NS),
        duration(requests.longest_ns)
    );
    let in_queue = slow.queue_ns.is_some_and(|ns| ns > slow.total_ns / 2);
    let because = slow.queue_ns.map(|queue_ns| {
        let queue = crate::percent(queue_ns, slow.total_ns);
        match in_queue {
            true if case.is_linux() => format!(
                "They spent {queue} of their time in the kernel's queue, before they went to the disk."
            ),
            true => {
                format!(
                    "They spent {queue} of their time in the disk's queue, behind other requests."
                )
            }
            false => format!(
                "The disk itself worked on {} of them for {} or longer. Together, they spent {queue} of their time \
                 in its queue.",
                grouped(slow.served),
                duration(SLOW_REQUEST_NS)
            ),
        }
    });
    let remedy = match in_queue {
        true if case.is_linux() => LIMITS,
        true => {
            "Find the programs that fill the queue (`laglab diskio`), and make them read and write \
             less at the same time"
        }
        false if case.is_linux() => {
            "Check the disk, its cable and its controller: the health data of the disk (smartctl), and the \
             disk's errors and resets in the kernel's log (dmesg)"
        }
        false => {
            "Check the disk, its cable and its controller: the health data of the disk (SMART), \
             and the disk's errors and resets in the event log System"
        }
    };
    let selection = Selection::new(Table::DiskIo)
        .filter(Condition::is("disk", disk))
        .filter(Condition::AtLeast("duration_ns", SLOW_REQUEST_NS));
    let (sum, longest) = (Expression::Sum, Expression::Max("duration_ns"));
    let title = format!("Requests of {} or longer", duration(SLOW_REQUEST_NS));
    let evidence = Evidence::from_selection(title, selection)
        .column("requests", "requests", Unit::Count, Expression::Count)
        .column("total_ns", "time", Unit::Duration, sum("duration_ns"))
        .column("longest_ns", "longest", Unit::Duration, longest)
        .column("queue_ns", "in the queue", Unit::Duration, sum("queue_ns"))
        .row([
            Some(requests.stored_slow.count.into()),
            Some(requests.stored_slow.total_ns.into()),
            Some(requests.stored.1.into()),
            requests.stored_slow.queue_ns.map(Into::into),
        ]);
    let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence);
    finding.why.extend(because.map(Into::into));
    let finding = finding
        .subjects([Subject::Disk { number: disk }])
        .subjects(waiting(case, disk, SLOW_REQUEST_NS)?)
        .with(evidence)
        .with(all)
        .remedy(remedy);
    Ok(with_doubt(finding, case, requests))
}

/// Returns processes on Linux that queued slow requests of a disk: requests that took `least_ns` or longer. The process
/// with the longest total time of slow requests comes first; at most `WAITING` processes are returned. On Windows, the
/// list is empty, because the theory `hangs` names the programs that waited.
fn waiting(case: &Case<'_>, disk: u32, least_ns: i64) -> Result<Vec<Subject>, StoreError> {
    if !case.is_linux() {
        return Ok(Vec::new());
    }
    let mut processes: FxHashMap<(Option<u32>, Option<u32>), i64> = FxHashMap::default();
    let table = case.table(Table::DiskIo)?;
    let columns = [
        "time_ns",
        "disk",
        "duration_ns",
        "process_id",
        "process_row",
    ];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = DiskIoView::new(&batch)?;
        for row in (0..view.len()).filter(|row| view.disk[*row] == disk) {
            let process = (view.process_row.get(row), view.process_id.get(row));
            let took_ns = view.duration_ns.get(row).filter(|ns| *ns >= least_ns);
            if let Some(took_ns) = took_ns.filter(|_| process.1.is_some()) {
                let sum = processes.entry(process).or_default();
                *sum = sum.saturating_add(took_ns);
            }
        }
    }
    let mut processes: Vec<_> = processes.into_iter().collect();
    processes.sort_by_key(|(process, took_ns)| (Reverse(*took_ns), *process));
    let most = processes.into_iter().take(WAITING);
    Ok(most
        .flat_map(|((row, id), _)| case.process_subject(row, id))
        .collect())
}
