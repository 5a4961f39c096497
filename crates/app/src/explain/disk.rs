//! What the disks did, and who waited for pages from them.

use serde::Serialize;
use tables::{DiskIoKind, Tables};

use super::largest;
use super::names::{Names, PerProcess, Process};

/// Requests to disks.
#[derive(Debug, Serialize)]
pub(crate) struct Disk {
    /// Reads.
    pub(crate) reads: Requests,
    /// Writes.
    pub(crate) writes: Requests,
    /// Flushes.
    pub(crate) flushes: Requests,
    /// The processes whose requests took longest in sum.
    pub(crate) processes: Vec<ProcessRequests>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Requests {
    /// How many.
    pub(crate) count: u64,
    /// Bytes moved.
    pub(crate) bytes: u64,
    /// Those whose duration is unknown; they are missing from the next two.
    pub(crate) without_duration: u64,
    /// Sum of their durations, from start to completion; requests overlap.
    pub(crate) total_ns: i64,
    /// The longest.
    pub(crate) longest_ns: i64,
}

impl Requests {
    fn add(&mut self, bytes: u64, duration_ns: Option<i64>) {
        self.count += 1;
        self.bytes += bytes;
        self.without_duration += u64::from(duration_ns.is_none());
        let ns = duration_ns.unwrap_or(0);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// A process's requests.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessRequests {
    #[serde(flatten)]
    pub(crate) process: Process,
    #[serde(flatten)]
    pub(crate) requests: Requests,
}

/// Hard page faults.
#[derive(Debug, Serialize)]
pub(crate) struct HardFaults {
    /// All of them.
    pub(crate) all: Requests,
    /// The processes that waited longest in sum.
    pub(crate) processes: Vec<ProcessRequests>,
}

pub(super) fn read(tables: &Tables, names: &Names<'_>) -> Option<Disk> {
    let mut disk = Disk {
        reads: Requests::default(),
        writes: Requests::default(),
        flushes: Requests::default(),
        processes: Vec::new(),
    };
    let mut by_process: PerProcess<'_, '_, Requests> = PerProcess::new(names);
    for table in &tables.disk_io {
        for row in 0..table.len() {
            let bytes = u64::from(table.size_bytes.get(row).unwrap_or(0));
            let ns = table.duration_ns.get(row);
            let time = table.time_ns[row];
            match table.kind.0[row] {
                DiskIoKind::Read => disk.reads.add(bytes, ns),
                DiskIoKind::Write => disk.writes.add(bytes, ns),
                DiskIoKind::Flush => disk.flushes.add(bytes, ns),
            }
            let requests = match table.thread_id.get(row) {
                Some(thread) => by_process.of_thread(thread, time),
                None => by_process.of_unknown(),
            };
            requests.add(bytes, ns);
        }
    }
    disk.processes = ranked(by_process.into_sums());
    if disk.processes.is_empty() {
        return None;
    }
    Some(disk)
}

pub(super) fn read_hard_faults(tables: &Tables, names: &Names<'_>) -> Option<HardFaults> {
    let mut all = Requests::default();
    let mut by_process: PerProcess<'_, '_, Requests> = PerProcess::new(names);
    for table in &tables.hard_faults {
        for row in 0..table.len() {
            let bytes = u64::from(table.size_bytes[row]);
            let ns = table.duration_ns.get(row);
            all.add(bytes, ns);
            by_process
                .of_thread(table.thread_id[row], table.time_ns[row])
                .add(bytes, ns);
        }
    }
    (all.count > 0).then(|| HardFaults {
        all,
        processes: ranked(by_process.into_sums()),
    })
}

fn ranked(by_process: Vec<(Process, Requests)>) -> Vec<ProcessRequests> {
    let rows = by_process
        .into_iter()
        .map(|(process, requests)| ProcessRequests { process, requests })
        .collect();
    largest(rows, |p: &ProcessRequests| {
        (
            p.requests.total_ns,
            p.requests.bytes,
            std::cmp::Reverse(p.process.clone()),
        )
    })
}
