//! Sums of one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use explain::{Interrupted, Reader};
use facts::Info;
use rustc_hash::FxHashMap;
use tables::{
    CpuRunsView, DiskIoView, DoubtfulRuns, Identities, InterruptsView, NetworkView, Options,
    SamplesView, Store, StoreError, Table,
};

use crate::besides::Drivers;
use crate::{Kind, Sum};

/// Tables that a recording is summed from.
pub const TABLES: [Table; 6] = [
    Table::CpuRuns,
    Table::Interrupts,
    Table::Samples,
    Table::ReadyThreads,
    Table::DiskIo,
    Table::Network,
];

/// Shortest and longest block of time, in nanoseconds. Blocks are short enough to be many, and long enough to
/// depend little on each other.
const BLOCK_NS: Range<i64> = 500_000_000..2_000_000_000;

/// Number of blocks of a recording, if their length allows it.
const BLOCKS: i64 = 20;

/// Maximum number of blocks, which limits the memory for long recordings and for false clocks. Beyond 480 s,
/// blocks are longer than 2 s.
const MOST_BLOCKS: i64 = 240;

/// Sums of one recording by row and block of time.
#[derive(Debug)]
pub struct Recording {
    /// Facts about the trace.
    pub(crate) info: Info,
    /// Length of the recorded time, in seconds.
    pub seconds: f64,
    /// Kinds of rows that were recorded.
    pub(crate) recorded: BTreeSet<Kind>,
    /// KiB of network traffic in each block; empty if there was none, or if it was not recorded.
    pub(crate) network_kib: Vec<f64>,
    pub(crate) blocks: Blocks,
    pub(crate) drivers: Drivers,
    /// Sums of each row, one per block, by kind and by name in lower case.
    pub(crate) rows: BTreeMap<(Kind, String), Row>,
}

/// Sums of one row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Name as recorded.
    pub(crate) name: String,
    pub(crate) blocks: Vec<Sum>,
}

/// Blocks of equal length that fill the compared time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blocks {
    start_ns: i64,
    /// End of the compared time, inclusive.
    end_ns: i64,
    pub(crate) length_ns: i64,
    pub(crate) count: usize,
}

impl Blocks {
    fn of(time: Range<i64>) -> Blocks {
        let whole = time.end.saturating_sub(time.start).max(1);
        let usual = (whole / BLOCKS).clamp(BLOCK_NS.start, BLOCK_NS.end);
        let length = usual.max(whole / MOST_BLOCKS);
        let count = (whole / length).max(1);
        Blocks {
            start_ns: time.start,
            end_ns: time.end,
            // The last block must not be shorter than the others.
            length_ns: (whole / count).max(1),
            count: count as usize,
        }
    }

    /// Returns the block of a time; `None` outside the compared time.
    fn at(self, ns: i64) -> Option<usize> {
        let is_within = (self.start_ns..=self.end_ns).contains(&ns);
        is_within.then(|| self.nearest(ns))
    }

    /// Returns the block of a time. Times outside belong to the first or last block.
    fn nearest(self, ns: i64) -> usize {
        let block = ns.saturating_sub(self.start_ns) / self.length_ns;
        usize::try_from(block).unwrap_or(0).min(self.count - 1)
    }

    /// Calls `each` with each block of a time range and the length of the range in the block. Ignores what is
    /// outside the compared time.
    fn split(self, time: Range<i64>, mut each: impl FnMut(usize, i64)) {
        let time = time.start.max(self.start_ns)..time.end.min(self.end_ns);
        if time.start >= time.end {
            return;
        }
        let last = self.nearest(time.end);
        let mut from = time.start;
        for block in self.nearest(time.start)..=last {
            let end = match block == last {
                true => time.end,
                false => self.start_ns + (block as i64 + 1) * self.length_ns,
            };
            each(block, end.saturating_sub(from).max(0));
            from = end;
        }
    }
}

/// Sums by kind and by row of a table of names; `None` if the row is unknown.
struct Sums {
    blocks: Blocks,
    of: FxHashMap<(Kind, Option<u32>), Vec<Sum>>,
}

impl Sums {
    fn of(&mut self, kind: Kind, row: Option<u32>) -> &mut [Sum] {
        let count = self.blocks.count;
        (self.of.entry((kind, row))).or_insert_with(|| vec![Sum::default(); count])
    }
}

impl Recording {
    /// Returns the name of the recorded computer, if the trace has it.
    pub fn computer(&self) -> Option<&str> {
        self.info.system.computer.as_deref()
    }

    /// Returns true if rows of this kind were recorded.
    pub fn has(&self, kind: Kind) -> bool {
        self.recorded.contains(&kind)
    }

    /// Sums a trace, or a part of it, in nanoseconds since the trace's start.
    ///
    /// # Errors
    /// If a table cannot be made or read, or if the progress callback asks to stop.
    pub fn read(
        store: &Store,
        during: Option<&Range<i64>>,
        options: Options<'_>,
    ) -> Result<Recording, StoreError> {
        let wanted = [&TABLES[..], &Info::TABLES, &Identities::TABLES].concat();
        store.make(&wanted, options)?;
        let info = Info::read(store, options)?;
        let names = Arc::new(Identities::read(store, options)?);
        let doubtful = DoubtfulRuns::read(store, options)?;
        let is_cancelled = || !(options.progress)(0);
        let reader = Reader::new(store, names, None, &is_cancelled);
        let mut time = time(&reader)?;
        if let Some(during) = during {
            time = time.start.max(during.start)..time.end.min(during.end);
        }
        let blocks = Blocks::of(time);
        let mut sums = Sums {
            blocks,
            of: FxHashMap::default(),
        };
        let mut recorded = BTreeSet::new();
        for (kind, table) in [
            (Kind::Program, Table::CpuRuns),
            (Kind::Ready, Table::ReadyThreads),
            (Kind::Disk, Table::DiskIo),
        ] {
            if reader.has(table)? {
                recorded.insert(kind);
            }
        }
        add_runs(&reader, &doubtful, &mut sums)?;
        recorded.extend(add_interrupts(&reader, &mut sums)?);
        recorded.extend(add_samples(&reader, &mut sums)?);
        add_requests(&reader, &mut sums)?;
        Ok(Recording {
            info,
            seconds: blocks.length_ns as f64 * blocks.count as f64 / 1e9,
            network_kib: network_kib(&reader, blocks)?,
            blocks,
            drivers: Drivers::read(&reader)?,
            rows: named(sums, &recorded, &reader),
            recorded,
        })
    }
}

/// Returns the time from the first to the last summed row.
fn time(reader: &Reader<'_>) -> Result<Range<i64>, StoreError> {
    let (mut start, mut end) = (i64::MAX, i64::MIN);
    for table in TABLES {
        for chunk in reader.table(table)?.chunks() {
            start = start.min(chunk.first);
            end = end.max(chunk.last);
        }
    }
    Ok(if start < end { start..end } else { 0..1 })
}

/// Adds the runs of threads and their waits for a CPU, without idle threads and doubtful runs.
fn add_runs(
    reader: &Reader<'_>,
    doubtful: &DoubtfulRuns,
    sums: &mut Sums,
) -> Result<(), StoreError> {
    const COLUMNS: [&str; 8] = [
        "start_ns",
        "end_ns",
        "cpu_ns",
        "cpu",
        "thread_id",
        "process_row",
        "planned_thread_id",
        "ready_ns",
    ];
    let table = reader.table(Table::CpuRuns)?;
    let blocks = sums.blocks;
    let mut interrupted = Interrupted::new(reader, i64::MIN..i64::MAX)?;
    // Block and time of each interrupt of a run.
    let mut inside: Vec<(usize, i64)> = Vec::new();
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let runs = CpuRunsView::new(&batch)?;
        for row in 0..runs.len() {
            let (start, end) = (runs.start_ns[row], runs.end_ns[row]);
            inside.clear();
            interrupted.of_run(runs.cpu[row], end, runs.cpu_ns[row], |at, ns| {
                inside.extend(blocks.at(at).map(|block| (block, ns)));
            })?;
            if runs.thread_id[row] == 0 || doubtful.is(&runs, row) {
                continue;
            }
            let process = runs.process_row.get(row);
            let of = sums.of(Kind::Program, process);
            blocks.split(start..end, |block, ns| of[block].add(0.0, ns as f64));
            if let Some(block) = blocks.at(end) {
                of[block].add(1.0, 0.0);
            }
            for (block, ns) in inside.drain(..) {
                of[block].add(0.0, -(ns as f64));
            }
            if let Some(ready) = runs.ready_ns.get(row).filter(|ns| *ns > 0) {
                let of = sums.of(Kind::Ready, process);
                blocks.split(start - ready..start, |block, ns| {
                    of[block].add(0.0, ns as f64)
                });
                if let Some(block) = blocks.at(start) {
                    of[block].add(1.0, 0.0);
                }
            }
        }
    }
    Ok(())
}

/// Adds DPCs and service routines. Returns the kinds that were recorded.
fn add_interrupts(reader: &Reader<'_>, sums: &mut Sums) -> Result<BTreeSet<Kind>, StoreError> {
    let table = reader.table(Table::Interrupts)?;
    let mut recorded = BTreeSet::new();
    let columns = ["end_ns", "kind", "exclusive_ns", "image_row"];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let routines = InterruptsView::new(&batch)?;
        for row in 0..routines.len() {
            let kind = match routines.kind.get(row) {
                Some("isr" | "msi" | "passive_isr") => Kind::Isr,
                Some(_) => Kind::Dpc,
                None => continue,
            };
            recorded.insert(kind);
            let block = sums.blocks.at(routines.end_ns[row]);
            let (Some(ns), Some(block)) = (routines.exclusive_ns.get(row), block) else {
                continue;
            };
            sums.of(kind, routines.image_row.get(row))[block].add(1.0, ns as f64);
        }
    }
    Ok(recorded)
}

/// Adds samples of busy CPUs. Returns the kinds that were recorded.
fn add_samples(reader: &Reader<'_>, sums: &mut Sums) -> Result<BTreeSet<Kind>, StoreError> {
    let table = reader.table(Table::Samples)?;
    let mut recorded = BTreeSet::new();
    let columns = [
        "time_ns",
        "thread_id",
        "image_row",
        "weight_ns",
        "in_dpc",
        "in_isr",
    ];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let samples = SamplesView::new(&batch)?;
        for row in 0..samples.len() {
            let is_in_interrupt = match (samples.in_dpc.get(row), samples.in_isr.get(row)) {
                (None, None) => continue,
                (in_dpc, in_isr) => in_dpc.unwrap_or(false) || in_isr.unwrap_or(false),
            };
            recorded.extend([Kind::InterruptCode, Kind::ThreadCode]);
            let kind = match is_in_interrupt {
                true => Kind::InterruptCode,
                false if samples.thread_id[row] == 0 => continue,
                false => Kind::ThreadCode,
            };
            let block = sums.blocks.at(samples.time_ns[row]);
            let (Some(ns), Some(block)) = (samples.weight_ns.get(row), block) else {
                continue;
            };
            sums.of(kind, samples.image_row.get(row))[block].add(1.0, ns as f64);
        }
    }
    Ok(recorded)
}

/// Kinds of disk requests. A row of disks has the number of the disk times their number, plus their index.
const REQUESTS: [&str; 3] = ["read", "write", "flush"];

/// Adds disk requests.
fn add_requests(reader: &Reader<'_>, sums: &mut Sums) -> Result<(), StoreError> {
    let table = reader.table(Table::DiskIo)?;
    let columns = ["time_ns", "service_ns", "kind", "disk"];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let requests = DiskIoView::new(&batch)?;
        for row in 0..requests.len() {
            let kind = requests.kind.get(row);
            let kind = kind.and_then(|kind| REQUESTS.iter().position(|known| *known == kind));
            let block = sums.blocks.at(requests.time_ns[row]);
            let known = kind.zip(requests.service_ns.get(row)).zip(block);
            let Some(((kind, ns), block)) = known else {
                continue;
            };
            let disk = requests.disk[row].saturating_mul(REQUESTS.len() as u32);
            let row = Some(disk.saturating_add(kind as u32));
            sums.of(Kind::Disk, row)[block].add(1.0, ns as f64);
        }
    }
    Ok(())
}

/// Returns the sent and received KiB in each block; empty if there are none.
fn network_kib(reader: &Reader<'_>, blocks: Blocks) -> Result<Vec<f64>, StoreError> {
    let table = reader.table(Table::Network)?;
    let mut kib = vec![0.0; blocks.count];
    let columns = ["time_ns", "action", "size_bytes"];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let packets = NetworkView::new(&batch)?;
        for row in 0..packets.len() {
            let block = blocks.at(packets.time_ns[row]);
            if let (Some("send" | "receive"), Some(block)) = (packets.action.get(row), block) {
                kib[block] += f64::from(packets.size_bytes[row]) / 1024.0;
            }
        }
    }
    let has_traffic = kib.iter().any(|kib| *kib > 0.0);
    Ok(if has_traffic { kib } else { Vec::new() })
}

/// Joins the rows of the same name. Processes of one program become one row.
fn named(
    sums: Sums,
    recorded: &BTreeSet<Kind>,
    reader: &Reader<'_>,
) -> BTreeMap<(Kind, String), Row> {
    let mut rows: BTreeMap<(Kind, String), Row> = BTreeMap::new();
    for ((kind, row), blocks) in sums.of {
        if !recorded.contains(&kind) {
            continue;
        }
        let name = match kind {
            Kind::Program | Kind::Ready => {
                let process = reader.names.process(row, None);
                process.name.unwrap_or("unknown processes").to_owned()
            }
            Kind::Disk => {
                let (row, kinds) = (row.unwrap_or(0), REQUESTS.len() as u32);
                format!("disk {}: {}", row / kinds, REQUESTS[(row % kinds) as usize])
            }
            _ => (reader.names.module(row))
                .unwrap_or("unknown modules")
                .to_owned(),
        };
        let joined = rows.entry((kind, name.to_lowercase())).or_default();
        if joined.blocks.is_empty() {
            joined.name = name;
            joined.blocks = blocks;
        } else {
            let pairs = joined.blocks.iter_mut().zip(blocks);
            pairs.for_each(|(sum, more)| sum.add(more.count, more.ns));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_the_time() {
        let s = 1_000_000_000;
        for (time, count) in [
            (0..10 * s, 20),
            (5 * s..65 * s, 30),
            (0..480 * s, 240),
            (0..100_000 * s, 240),
            (0..i64::MAX / 2, 240),
            (0..s, 2),
            (0..0, 1),
        ] {
            let blocks = Blocks::of(time.clone());
            assert_eq!(blocks.count, count, "{time:?}");
            assert_eq!(blocks.at(time.start), Some(0));
            assert_eq!(blocks.at(time.end), Some(count - 1));
            assert_eq!(blocks.at(time.end + 1), None);
            let mut whole = 0;
            blocks.split(time.start - 5..time.end + 5, |_, ns| whole += ns);
            assert_eq!(whole, time.end - time.start);
        }
        let blocks = Blocks::of(0..10 * s);
        let mut parts = Vec::new();
        blocks.split(400_000_000..1_100_000_000, |block, ns| {
            parts.push((block, ns))
        });
        assert_eq!(
            parts,
            [(0, 100_000_000), (1, 500_000_000), (2, 100_000_000)]
        );
    }
}
