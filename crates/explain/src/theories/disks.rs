//! Were disks slow, or was there a queue before them?

use rustc_hash::FxHashMap;
use tables::{DiskIoView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, duration, grouped,
};

/// Requests to disks.
pub(crate) struct Disks;

static ABOUT: About = About {
    id: "disks",
    question: "Did requests to disks take long, or queue?",
    tables: &[Table::DiskIo],
    sources: &[],
};

/// The mean time of a request from which on a disk is called slow: a rule of thumb.
const SLOW_NS: i64 = 25_000_000;
/// Fewer requests make no mean.
const AT_LEAST: u64 = 50;
/// Rows shown.
const SHOWN: usize = 10;

#[derive(Clone, Copy, Default)]
struct Requests {
    count: u64,
    known: u64,
    bytes: u64,
    total_ns: i64,
    longest_ns: i64,
    queue_ns: Option<i64>,
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

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
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
                    disk.known += 1;
                    disk.total_ns = disk.total_ns.saturating_add(ns);
                    disk.longest_ns = disk.longest_ns.max(ns);
                }
                if let Some(ns) = view.queue_ns.get(row) {
                    disk.queue_ns = Some(disk.queue_ns.unwrap_or(0).saturating_add(ns));
                }
            }
        }
        if disks.is_empty() {
            let what = "there are no requests to disks: none was made, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut disks: Vec<(u32, Requests)> = disks.into_iter().collect();
        disks.sort_by_key(|(disk, requests)| (requests.known == 0, -requests.total_ns, *disk));
        let mut evidence = Evidence::new(
            "Requests by disk",
            format!(
                "SELECT disk, count(*) AS requests, sum(size_bytes) AS size_bytes, sum(duration_ns) \
                 AS total_ns, max(duration_ns) AS longest_ns, sum(queue_ns) AS queue_ns FROM disk_io \
                 GROUP BY disk ORDER BY total_ns DESC NULLS LAST, disk LIMIT {SHOWN}"
            ),
            &[
                Column::new("disk", "disk", Unit::None),
                Column::new("requests", "requests", Unit::Count),
                Column::new("size_bytes", "size", Unit::Bytes),
                Column::new("total_ns", "time", Unit::Duration),
                Column::new("longest_ns", "longest", Unit::Duration),
                Column::new("queue_ns", "of it in the queue", Unit::Duration),
            ],
        );
        for (disk, requests) in disks.iter().take(SHOWN) {
            let known = |ns: i64| (requests.known > 0).then(|| ns.into());
            evidence = evidence.row([
                Some((*disk).into()),
                Some(requests.count.into()),
                Some(requests.bytes.into()),
                known(requests.total_ns),
                known(requests.longest_ns),
                requests.queue_ns.map(Into::into),
            ]);
        }
        let slow = |(_, requests): &&(u32, Requests)| {
            requests.known >= AT_LEAST && requests.mean_ns() >= SLOW_NS
        };
        let Some((disk, requests)) = disks.iter().find(slow) else {
            let (_, most) = disks[0];
            let because = format!(
                "no disk took {} or more for a request in the mean of {AT_LEAST} or more; the \
                 busiest took {} for {}, {} at most",
                duration(SLOW_NS),
                duration(most.mean_ns()),
                grouped(most.known),
                duration(most.longest_ns)
            );
            return Ok(Outcome::Against(because, vec![evidence]));
        };
        let sentence = format!(
            "Disk {disk} was slow: its {} requests took {} in the mean, {} at most{}.",
            grouped(requests.known),
            duration(requests.mean_ns()),
            duration(requests.longest_ns),
            requests.queue_ns.map_or_else(String::new, |ns| format!(
                ", {} of it in the queue",
                crate::percent(ns, requests.total_ns)
            ))
        );
        let finding = Finding::new(&ABOUT, Severity::Warning, sentence)
            .with(evidence)
            .remedy(
                "See who asks for so much (`laglab diskio`), and whether the disk is what the \
                 machine needs: above 25 ms a request, programs that wait for it are felt to be slow",
            )
            .doubt("Requests overlap, so their times add up to more than the clock shows");
        Ok(Outcome::For(vec![finding]))
    }
}
