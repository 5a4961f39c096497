//! Theory: a limit of a cgroup held back reads from disks of Linux.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, DiskIoView, StoreError, Table, linux_states};

use crate::ranges::union;
use crate::thresholds::{DISRUPTIVE_NS, NOTICED_NS};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit,
    Value, counted, duration,
};

/// Theory about limits on I/O that act before the kernel logs a request. If a limit acts later, the request waits in the
/// disk's queue, and the theory about slow disks finds it.
pub(crate) struct IoLimit;

static ABOUT: About = About {
    id: "io-limit",
    name: "I/O limits",
    question: "Did a limit on I/O hold back reads from disks?",
    tables: &[Table::CpuRuns, Table::DiskIo],
    sources: &[Source {
        title: "Linux kernel: control group v2, io.max and io.latency",
        url: Some("https://docs.kernel.org/admin-guide/cgroup-v2.html#io"),
    }],
};

/// Shortest wait that counts, in nanoseconds. A limit of 1,000 requests a second makes waits of this length.
const SHORTEST_NS: i64 = 1_000_000;
/// Longest time from the completion of a request to the wake of the thread that waited for it, in nanoseconds. The same
/// softirq does both: 1 to 3 µs (measured). Interrupts can come in between.
const WAKE_NS: i64 = 200_000;
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

impl Theory for IoLimit {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut waits = DiskWait::read(case)?;
        if !find_requests(case, &mut waits)? {
            let what = "there are no disk requests: none were made, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut processes: FxHashMap<ProcessKey, Vec<DiskWait>> = FxHashMap::default();
        for wait in waits.into_iter().filter(DiskWait::is_of_limit) {
            let of_process = processes.entry((wait.process_row, wait.process_id));
            of_process.or_default().push(wait);
        }
        let processes = processes.into_iter();
        let mut processes: Vec<ProcessWaits> = processes
            .map(|(process, waits)| ProcessWaits { process, waits })
            .filter(|waits| waits.delay_ns() >= NOTICED_NS)
            .collect();
        if processes.is_empty() {
            let because = format!(
                "no program waited for {} or longer in total for reads that a thread of the kernel passed on late",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        processes.sort_by_key(|waits| (Reverse(waits.delay_ns()), waits.process));
        processes.truncate(FINDINGS);
        Ok(Outcome::For(
            processes.iter().map(|waits| waits.finding(case)).collect(),
        ))
    }
}

/// Row and id of a process, as far as they are known.
type ProcessKey = (Option<u32>, Option<u32>);

/// Wait of a program's thread in the kernel (state D) that an interrupt or a softirq ended.
struct DiskWait {
    range: Range<i64>,
    thread_id: u32,
    thread_row: Option<u32>,
    process_id: Option<u32>,
    process_row: Option<u32>,
    /// True if the thread itself made a request that was completed at the end of the wait. The thread waited for it.
    is_for_own: bool,
    /// The read that a thread of the kernel made during the wait, and that was completed at the end of the wait.
    read: Option<LateRead>,
}

#[derive(Clone, Copy)]
struct LateRead {
    disk: u32,
    start_ns: i64,
    end_ns: i64,
}

impl DiskWait {
    /// Reads the waits of programs in the order of their ends.
    fn read(case: &Case<'_>) -> Result<Vec<DiskWait>, StoreError> {
        const COLUMNS: [&str; 8] = [
            "thread_id",
            "thread_row",
            "process_id",
            "process_row",
            "previous_out_ns",
            "previous_wait_reason",
            "waits_ns",
            "readied_by_dpc",
        ];
        let table = case.table(Table::CpuRuns)?;
        let mut waits = Vec::new();
        for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let waits_ns = view.waits_ns.get(row).filter(|ns| *ns >= SHORTEST_NS);
                let Some((since, waits_ns)) = view.previous_out_ns.get(row).zip(waits_ns) else {
                    continue;
                };
                let process_row = view.process_row.get(row);
                let is_of_kernel = process_row.is_some_and(|it| case.names.is_kernel_thread(it));
                if view.previous_wait_reason.get(row) == Some(linux_states::UNINTERRUPTIBLE)
                    && view.readied_by_dpc.get(row) == Some(true)
                    && !is_of_kernel
                {
                    waits.push(DiskWait {
                        range: since..since.saturating_add(waits_ns),
                        thread_id: view.thread_id[row],
                        thread_row: view.thread_row.get(row),
                        process_id: view.process_id.get(row),
                        process_row,
                        is_for_own: false,
                        read: None,
                    });
                }
            }
        }
        waits.sort_by_key(|wait| wait.range.end);
        Ok(waits)
    }

    /// Adds a request that was completed at the end of the wait.
    fn add(&mut self, read: LateRead, thread_id: Option<u32>, is_read_of_kernel: bool) {
        if thread_id == Some(self.thread_id) {
            self.is_for_own = true;
        } else if is_read_of_kernel && read.start_ns > self.range.start {
            // If several reads match, the earliest one shows the shortest delay.
            self.read = Some(self.read.map_or(read, |other| {
                if other.start_ns <= read.start_ns {
                    other
                } else {
                    read
                }
            }));
        }
    }

    /// Returns the time from the start of the wait to the read.
    fn delay(&self) -> Option<Range<i64>> {
        self.read.map(|read| self.range.start..read.start_ns)
    }

    /// Returns true if the read came so late that most of the wait was before it.
    fn is_of_limit(&self) -> bool {
        let length = |range: &Range<i64>| range.end.saturating_sub(range.start);
        let delay = self.delay().filter(|_| !self.is_for_own);
        delay.is_some_and(|delay| length(&delay) > length(&self.range) / 2)
    }
}

/// Adds the disk requests to the waits that ended with them. Returns false if there are no disk requests.
fn find_requests(case: &Case<'_>, waits: &mut [DiskWait]) -> Result<bool, StoreError> {
    const COLUMNS: [&str; 6] = [
        "time_ns",
        "init_ns",
        "kind",
        "disk",
        "thread_id",
        "process_row",
    ];
    let table = case.table(Table::DiskIo)?;
    let mut has_requests = false;
    for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = DiskIoView::new(&batch)?;
        has_requests |= !view.is_empty();
        for row in 0..view.len() {
            let end_ns = view.time_ns[row];
            let Some(start_ns) = view.init_ns.get(row) else {
                continue;
            };
            let process_row = view.process_row.get(row);
            let is_of_kernel = process_row.is_some_and(|it| case.names.is_kernel_thread(it));
            let is_read_of_kernel = is_of_kernel && view.kind.get(row) == Some("read");
            let disk = view.disk[row];
            let read = LateRead {
                disk,
                start_ns,
                end_ns,
            };
            let first = waits.partition_point(|wait| wait.range.end < end_ns);
            let ended = waits[first..].iter_mut();
            for wait in ended.take_while(|wait| wait.range.end - end_ns <= WAKE_NS) {
                wait.add(read, view.thread_id.get(row), is_read_of_kernel);
            }
        }
    }
    Ok(has_requests)
}

/// Waits of the threads of a process for reads that were held back.
struct ProcessWaits {
    process: ProcessKey,
    waits: Vec<DiskWait>,
}

impl ProcessWaits {
    /// Returns the time in which reads of at least one thread were held back, in nanoseconds.
    fn delay_ns(&self) -> i64 {
        let ranges = union(self.waits.iter().filter_map(DiskWait::delay).collect());
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let (row, id) = self.process;
        let process = case.process(row, id);
        let delay_ns = self.delay_ns();
        let reads = || self.waits.iter().filter_map(|wait| wait.read);
        let longest = self.waits.iter().filter_map(DiskWait::delay);
        let longest_ns = longest
            .map(|delay| delay.end - delay.start)
            .max()
            .unwrap_or(0);
        let mut disks: Vec<String> = reads().map(|read| case.disk(read.disk)).collect();
        disks.sort_unstable();
        disks.dedup();
        let count = self.waits.len() as u64;
        let served: i64 = reads().map(|read| read.end_ns - read.start_ns).sum();
        let sentence = format!(
            "{process} waited for {} in total ({}, {} at most) until its reads went to {}: a limit on the I/O of its \
             cgroup probably held them back.",
            duration(delay_ns),
            counted(count, "read", "reads"),
            duration(longest_ns),
            disks.join(", "),
        );
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let mut threads: Vec<(u32, Option<u32>)> = (self.waits.iter())
            .map(|wait| (wait.thread_id, wait.thread_row))
            .collect();
        threads.sort_unstable();
        threads.dedup();
        let start = self.waits.iter().map(|wait| wait.range.start).min();
        let end = self.waits.iter().map(|wait| wait.range.end).max();
        let cgroup = match id {
            Some(id) => format!("`cat /proc/{id}/cgroup` names it"),
            None => "`cat /proc/PID/cgroup` names it".to_owned(),
        };
        Finding::new(&ABOUT, severity, sentence)
            .subjects(threads.into_iter().map(|(id, thread_row)| Subject::Thread {
                id,
                row: thread_row,
                process_row: row,
            }))
            .subjects(case.process_subject(row, id))
            .during(start.unwrap_or(0)..end.unwrap_or(0))
            .delay(delay_ns, format!("of {process}, simultaneous waits counted once"))
            .because(format!(
                "The threads blocked (state D), and only later a thread of the kernel made the reads. The disk then \
                 completed a read within {} on average and ended the wait.",
                duration(served / i64::try_from(count).unwrap_or(i64::MAX).max(1)),
            ))
            .remedy(format!(
                "Read the limits of its cgroup ({cgroup}): io.max, io.latency and io.cost, or blkio.throttle.* in \
                 version 1. Raise them, let the program read less, or move it to another cgroup"
            ))
            .doubt(
                "No event shows the limit. Drivers that pass reads on without logging them (encryption, RAID, network \
                 disks) can look the same",
            )
            .with(self.evidence())
    }

    /// Returns evidence with the longest waits.
    fn evidence(&self) -> Evidence {
        let mut waits: Vec<(&DiskWait, LateRead)> = (self.waits.iter())
            .filter_map(|wait| Some((wait, wait.read?)))
            .collect();
        waits.sort_by_key(|(wait, read)| {
            let held_ns = read.start_ns - wait.range.start;
            (Reverse(held_ns), wait.range.start, wait.thread_id)
        });
        waits.truncate(SHOWN);
        let these: Vec<String> = (waits.iter())
            .map(|(wait, read)| {
                format!(
                    "({}, {}, {}, {}, {})",
                    wait.thread_id, wait.range.start, read.start_ns, read.end_ns, read.disk
                )
            })
            .collect();
        let query = format!(
            "SELECT thread, from_ns, init_ns - from_ns AS held_ns, duration_ns, disk FROM disk_io JOIN (VALUES {}) AS \
             these (thread, from_ns, made_ns, done_ns, on_disk) ON init_ns = made_ns AND time_ns = done_ns AND disk = \
             on_disk ORDER BY held_ns DESC, from_ns, thread",
            these.join(", ")
        );
        let columns = [
            Column::new("thread", "thread", Unit::None),
            Column::new("from_ns", "blocked at", Unit::Moment),
            Column::new("held_ns", "until the read", Unit::Duration),
            Column::new("duration_ns", "read", Unit::Duration),
            Column::new("disk", "disk", Unit::None),
        ];
        let evidence = Evidence::new("Longest waits until a read", query, &columns);
        waits.into_iter().fold(evidence, |evidence, (wait, read)| {
            evidence.row([
                Some(Value::from(wait.thread_id)),
                Some(wait.range.start.into()),
                Some((read.start_ns - wait.range.start).into()),
                Some((read.end_ns - read.start_ns).into()),
                Some(read.disk.into()),
            ])
        })
    }
}
