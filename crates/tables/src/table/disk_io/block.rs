//! Requests to disks of Linux, from the events of the block layer.
//!
//! A part of a file that a program reads or writes is queued (`block_bio_queue`). Neighbouring parts are merged into
//! one request. A large part is split into several requests. A request goes to the driver (`block_rq_issue`) and is
//! completed, possibly in several steps (`block_rq_complete`). The events have no request number. The device and the
//! first sector identify the request.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{DiskIo, DiskIoKind};

/// Maximum number of parts that wait for their completion. Some devices have no requests, for example the devices of
/// the device mapper. Parts for these devices are never completed.
const MOST_QUEUED: usize = 1 << 16;

/// Number of bytes of a sector.
const SECTOR: u64 = 512;

/// Returns the major and the minor number of a disk or partition of Linux. `number` is the number in the table
/// `disk_io`: the major number times 2²⁰, plus the minor number.
pub fn disk_of_linux(number: u32) -> (u32, u32) {
    (number >> 20, number & 0xF_FFFF)
}

/// Event of the block layer.
#[derive(Clone, Copy, Debug)]
pub struct BlockEvent {
    /// CPU that logged the event.
    pub cpu: u16,
    /// Id of the thread.
    pub thread_id: Option<u32>,
    /// Stage of the request.
    pub stage: Stage,
    /// Number of the disk or partition, see [`disk_of_linux`].
    pub device: u32,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Kind of the event.
    pub kind: DiskIoKind,
}

/// Stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A part of a file was queued.
    Queued,
    /// The request went to the driver.
    Issued,
    /// The request was completed.
    Completed,
}

impl BlockEvent {
    fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors.into())
    }

    /// Returns the number that a disk and its partitions have in common.
    fn major(&self) -> u32 {
        disk_of_linux(self.device).0
    }
}

/// Requests that are not complete.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Queued parts by first sector, with their times.
    queued: BTreeMap<u64, Vec<(i64, BlockEvent)>>,
    queued_count: usize,
    /// Issued requests by device, first sector and kind.
    issued: FxHashMap<(u32, u64, DiskIoKind), IssuedRequest>,
}

#[derive(Clone, Copy, Debug)]
struct IssuedRequest {
    issue_ns: i64,
    event: BlockEvent,
    /// Time at which the part with the request's first sector was queued, in nanoseconds, and the event. `None` if
    /// it is unknown.
    queued: Option<(i64, BlockEvent)>,
    /// Number of sectors that are not complete.
    remaining: u32,
}

/// Completed request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) complete_ns: i64,
    pub(super) completed: BlockEvent,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    pub(super) issue_ns: Option<i64>,
    /// Time at which the part with the request's first sector was queued, in nanoseconds, and the event. `None` if
    /// it is unknown.
    pub(super) queued: Option<(i64, BlockEvent)>,
}

impl Requests {
    /// Takes the next event. Returns the request if it is complete now.
    pub(super) fn take(&mut self, time_ns: i64, event: BlockEvent) -> Option<Request> {
        match event.stage {
            Stage::Queued => {
                if self.queued_count >= MOST_QUEUED {
                    self.queued.clear();
                    self.queued_count = 0;
                }
                let of_sector = self.queued.entry(event.sector).or_default();
                of_sector.push((time_ns, event));
                self.queued_count += 1;
                None
            }
            Stage::Issued => {
                let key = (event.device, event.sector, event.kind);
                let queued = self.find(&event);
                let issued = IssuedRequest {
                    issue_ns: time_ns,
                    event,
                    queued,
                    remaining: event.sectors,
                };
                self.issued.insert(key, issued);
                None
            }
            Stage::Completed => self.complete(time_ns, event),
        }
    }

    fn complete(&mut self, time_ns: i64, event: BlockEvent) -> Option<Request> {
        let issued = self
            .issued
            .remove(&(event.device, event.sector, event.kind));
        let request = match issued {
            Some(mut issued) => {
                issued.remaining = issued.remaining.saturating_sub(event.sectors);
                if issued.remaining > 0 && event.sectors > 0 {
                    let key = (event.device, event.end(), event.kind);
                    self.issued.insert(key, issued);
                    return None;
                }
                Request {
                    complete_ns: time_ns,
                    completed: event,
                    sector: issued.event.sector,
                    sectors: issued.event.sectors,
                    issue_ns: Some(issued.issue_ns),
                    queued: issued.queued,
                }
            }
            None => Request {
                complete_ns: time_ns,
                completed: event,
                sector: event.sector,
                sectors: event.sectors,
                issue_ns: None,
                queued: self.find(&event),
            },
        };
        self.forget(request.sector, event);
        Some(request)
    }

    /// Returns the queued part that contains the first sector of a request and has the kind of the request. If there
    /// are several, prefers a part of the same device, then the nearest first sector, then the oldest part. The part may
    /// be of a partition of the disk; its sectors are then counted from the start of the disk, too.
    fn find(&self, request: &BlockEvent) -> Option<(i64, BlockEvent)> {
        let has_sector = |(_, part): &&(i64, BlockEvent)| {
            part.kind == request.kind
                && (part.end() > request.sector || part.sectors == 0)
                && part.major() == request.major()
        };
        let parts = || {
            let before = self.queued.range(..=request.sector).rev().take(8);
            before.flat_map(|(_, parts)| parts).filter(has_sector)
        };
        let of_disk = parts().find(|(_, part)| part.device == request.device);
        of_disk.or_else(|| parts().next()).copied()
    }

    /// Removes the queued parts that end within the completed sectors of a request. `first` is the first completed
    /// sector. `last` is the event of the last completed sectors.
    fn forget(&mut self, first: u64, last: BlockEvent) {
        let end = last.end().max(first.saturating_add(1));
        let complete: Vec<u64> = self
            .queued
            .range(..end)
            .rev()
            .take(4096)
            .map(|it| *it.0)
            .collect();
        for sector in complete {
            let Some(parts) = self.queued.get_mut(&sector) else {
                continue;
            };
            let before = parts.len();
            parts.retain(|(_, part)| {
                part.kind != last.kind
                    || part.major() != last.major()
                    || part.end() > end
                    || part.end() <= first && part.sectors > 0
            });
            self.queued_count -= before - parts.len();
            if parts.is_empty() {
                self.queued.remove(&sector);
            }
        }
    }
}

impl DiskIo {
    /// Adds a request of Linux, except for the columns that refer to other tables.
    pub(super) fn push_request(&mut self, request: &Request) {
        let completed = &request.completed;
        let queued_ns = request.queued.map(|(queued_ns, _)| queued_ns);
        let init_ns = queued_ns.or(request.issue_ns);
        let since = |ns: i64| request.complete_ns.saturating_sub(ns);
        self.time_ns.push(request.complete_ns);
        self.init_ns.push(init_ns);
        self.service_ns.push(request.issue_ns.map(since));
        let queue_ns = (request.issue_ns.zip(queued_ns))
            .map(|(issue_ns, queued_ns)| issue_ns.saturating_sub(queued_ns));
        self.queue_ns.push(queue_ns);
        self.duration_ns.push(init_ns.map(since));
        self.response_ns.push(None);
        self.cpu.push(completed.cpu);
        self.kind.0.push(completed.kind);
        self.disk.push(completed.device);
        let has_data = completed.kind != DiskIoKind::Flush;
        let offset = request.sector.saturating_mul(SECTOR);
        self.offset_bytes.push(has_data.then_some(offset));
        let size = u64::from(request.sectors).saturating_mul(SECTOR);
        let size = u32::try_from(size).ok();
        self.size_bytes.push(size.filter(|_| has_data));
        self.priority.push(None);
        self.irp_flags.push(None);
        self.irp.push(None);
        self.file_object.push(None);
        let thread_id = request.queued.and_then(|(_, part)| part.thread_id);
        self.thread_id.push(thread_id);
    }
}

/// Returns the kind of a request by its letters: R read, W write, F flush, D discard. A leading F means a flush before
/// a write. Returns `None` for requests that neither read nor write, such as requests that manage zones.
pub fn kind_of_request(letters: &[u8], sectors: u32) -> Option<DiskIoKind> {
    // A write that begins with a flush has both letters.
    let (has_flush, operation) = match letters {
        [b'F', operation @ (b'R' | b'W' | b'D' | b'F'), ..] => (true, *operation),
        [operation, ..] => (false, *operation),
        [] => return None,
    };
    Some(match operation {
        b'W' if has_flush && sectors == 0 => DiskIoKind::Flush,
        b'W' => DiskIoKind::Write,
        b'R' => DiskIoKind::Read,
        b'F' => DiskIoKind::Flush,
        b'D' => DiskIoKind::Discard,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(stage: Stage, device: u32, sector: u64, sectors: u32) -> BlockEvent {
        BlockEvent {
            cpu: 0,
            thread_id: Some(7),
            stage,
            device,
            sector,
            sectors,
            kind: DiskIoKind::Read,
        }
    }

    #[test]
    fn parts_become_requests() {
        use Stage::{Completed, Issued, Queued};
        let disk = 8 << 20;
        let mut requests = Requests::default();
        // Two neighbouring parts of a partition become one request.
        for (time_ns, event) in [
            (10, event(Queued, disk + 1, 100, 8)),
            (11, event(Queued, disk + 1, 108, 8)),
            (20, event(Issued, disk, 100, 16)),
        ] {
            assert!(requests.take(time_ns, event).is_none());
        }
        // It completes in two steps.
        assert!(requests.take(30, event(Completed, disk, 100, 8)).is_none());
        let request = requests.take(40, event(Completed, disk, 108, 8)).unwrap();
        assert_eq!((request.sector, request.sectors), (100, 16));
        assert_eq!(request.issue_ns, Some(20));
        assert_eq!(request.queued.unwrap().0, 10);
        assert_eq!((requests.queued_count, requests.queued.len()), (0, 0));

        // A large part becomes two requests, which complete out of order.
        for (time_ns, event) in [
            (50, event(Queued, disk, 0, 2048)),
            (51, event(Issued, disk, 0, 1024)),
            (52, event(Issued, disk, 1024, 1024)),
        ] {
            assert!(requests.take(time_ns, event).is_none());
        }
        let second = requests
            .take(60, event(Completed, disk, 1024, 1024))
            .unwrap();
        let first = requests.take(61, event(Completed, disk, 0, 1024)).unwrap();
        for request in [first, second] {
            assert_eq!(request.queued.unwrap().0, 50);
        }
        // A part of another disk with the same sector does not belong to the request.
        assert!(requests.take(70, event(Queued, 9 << 20, 500, 8)).is_none());
        let request = requests.take(71, event(Completed, disk, 500, 8)).unwrap();
        assert!(request.queued.is_none() && request.issue_ns.is_none());
    }

    #[test]
    fn letters_tell_the_kind() {
        // Letters of `blk_fill_rwbs` in the kernel's sources.
        for (letters, sectors, kind) in [
            ("R", 8, Some(DiskIoKind::Read)),
            ("RA", 8, Some(DiskIoKind::Read)),
            ("WS", 8, Some(DiskIoKind::Write)),
            ("FWFS", 8, Some(DiskIoKind::Write)),
            ("FWS", 0, Some(DiskIoKind::Flush)),
            ("FF", 0, Some(DiskIoKind::Flush)),
            ("D", 8, Some(DiskIoKind::Discard)),
            ("N", 0, None),
            ("", 0, None),
        ] {
            assert_eq!(
                kind_of_request(letters.as_bytes(), sectors),
                kind,
                "{letters}"
            );
        }
    }
}
