//! Disk requests for which a thread waits, from the table `disk_io`.

use std::collections::BTreeMap;

use explain::Reader;
use rustc_hash::FxHashMap;
use sim::replay::{Request, Wake};
use tables::{DiskIoView, StoreError, Table};

use super::interrupts::Interrupts;
use super::rows::Rows;
use super::threads::{WaitEnd, Waits};

/// Request that completed in a DPC.
#[derive(Clone, Copy, Debug)]
struct CompletedRequest {
    thread: u32,
    init_ns: u64,
    disk: u32,
}

/// Requests by the DPC in which they completed.
#[derive(Debug, Default)]
pub(super) struct Requests {
    by_dpc: FxHashMap<u32, Vec<CompletedRequest>>,
}

impl Requests {
    pub(super) fn read(
        reader: &Reader<'_>,
        rows: &Rows,
        interrupts: &Interrupts,
    ) -> Result<Requests, StoreError> {
        let mut requests = Requests::default();
        let table = reader.table(Table::DiskIo)?;
        let columns = [
            "time_ns",
            "init_ns",
            "cpu",
            "disk",
            "thread_id",
            "thread_row",
        ];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = DiskIoView::new(&batch)?;
            for row in 0..view.len() {
                let thread = (view.thread_id.get(row))
                    .and_then(|id| rows.thread_index(view.thread_row.get(row), id));
                let dpc = interrupts.at(view.cpu[row], view.time_ns[row].max(0) as u64);
                if let (Some(thread), Some(dpc), Some(init)) = (thread, dpc, view.init_ns.get(row))
                {
                    requests
                        .by_dpc
                        .entry(dpc)
                        .or_default()
                        .push(CompletedRequest {
                            thread,
                            init_ns: init.max(0) as u64,
                            disk: view.disk[row],
                        });
                }
            }
        }
        Ok(requests)
    }

    /// Returns true if a DPC completed exactly one request, and this thread made it before its wait at `out_ns`.
    pub(super) fn ended(&self, dpc: u32, thread: u32, out_ns: u64) -> bool {
        match self.by_dpc.get(&dpc).map(Vec::as_slice) {
            Some([one]) => one.thread == thread && one.init_ns <= out_ns,
            _ => false,
        }
    }

    /// Returns the requests for which threads waited, and makes their DPCs depend on them.
    pub(super) fn into_workload(
        self,
        waits: &mut Waits,
        interrupts: &mut Interrupts,
    ) -> Vec<Request> {
        let mut all: Vec<(u32, u32, usize)> = Vec::new();
        for (thread, list) in (0..).zip(&waits.per_thread) {
            for (n, wait) in list.iter().enumerate() {
                if let WaitEnd::Disk(dpc) = wait.ended {
                    all.push((dpc, thread, n));
                }
            }
        }
        // Indices of routines are in the order of their ends, so this sorts the requests by completion.
        all.sort_unstable();
        // Index of each disk, and the time from which on it is free.
        let mut disks: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        let mut requests = Vec::new();
        for (dpc, thread, n) in all {
            let wait = &mut waits.per_thread[thread as usize][n];
            let wake = Wake {
                thread,
                wait: n as u32,
                boost: wait.wake.map_or(0, |wake| wake.boost),
            };
            let at_ns = wait.wake.map_or(0, |wake| wake.at_ns);
            let (wakes, out_ns) = (waits.in_routines.entry(dpc).or_default(), wait.out_ns);
            wakes.push((at_ns, wake));
            let Some((interrupt, start_ns)) = interrupts.close(dpc) else {
                wait.ended = WaitEnd::Outside;
                continue;
            };
            let number = self.by_dpc[&dpc][0].disk;
            let next = disks.len() as u32;
            let (at, free_ns) = disks.entry(number).or_insert((next, 0));
            let (disk, free_ns) = (*at, std::mem::replace(free_ns, start_ns));
            wait.ended = WaitEnd::Request(requests.len() as u32);
            requests.push(Request {
                disk,
                service_ns: start_ns.saturating_sub(out_ns.max(free_ns)),
                interrupt,
            });
        }
        requests
    }
}
