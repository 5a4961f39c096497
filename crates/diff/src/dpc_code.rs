//! Code that runs in the DPCs of each module: samples, joined with the DPCs during which they were taken.

use std::collections::{BTreeMap, VecDeque};

use arrow_array::RecordBatch;
use tables::{InterruptsView, StoreError};

use crate::interrupts::{IN_THREADS, ISRS};

/// Sampled time of code in DPCs, in nanoseconds. The key has the module of the DPCs and the module of the code, both in
/// lower case.
pub(crate) type DpcCode = BTreeMap<(Box<str>, Box<str>), f64>;

/// Columns of `interrupts` that are read.
pub(crate) const COLUMNS: [&str; 5] = ["start_ns", "end_ns", "cpu", "kind", "image_row"];

/// Time by which rows of DPCs are read ahead of a sample, in nanoseconds. A DPC that lasts longer is not found.
const AHEAD_NS: i64 = 10_000_000_000;

/// DPCs of all CPUs, read in parallel with the samples.
pub(crate) struct Dpcs<B> {
    batches: B,
    /// DPCs of each CPU, in the order of their ends.
    cpus: Vec<VecDeque<Dpc>>,
    /// End of the last DPC that was read.
    read_ns: i64,
}

#[derive(Clone, Copy)]
struct Dpc {
    start_ns: i64,
    end_ns: i64,
    image: Option<u32>,
}

impl<B: Iterator<Item = Result<RecordBatch, StoreError>>> Dpcs<B> {
    /// Creates a reader of the rows of the table `interrupts`, with the columns `COLUMNS`.
    pub(crate) fn new(batches: B) -> Dpcs<B> {
        Dpcs {
            batches,
            cpus: Vec::new(),
            read_ns: i64::MIN,
        }
    }

    /// Returns the image of the DPC that ran on a CPU at a time; `None` if no DPC ran. Times must not decrease from
    /// call to call.
    pub(crate) fn image_at(&mut self, cpu: u16, at_ns: i64) -> Result<Option<u32>, StoreError> {
        loop {
            if let Some(dpcs) = self.cpus.get_mut(usize::from(cpu)) {
                while dpcs.pop_front_if(|dpc| dpc.end_ns < at_ns).is_some() {}
                // DPCs are sorted by their ends, and a nested DPC ends first. So the first match is the innermost DPC.
                if let Some(dpc) = dpcs.iter().find(|dpc| dpc.start_ns <= at_ns) {
                    return Ok(dpc.image);
                }
            }
            if self.read_ns > at_ns.saturating_add(AHEAD_NS) || !self.read_more(at_ns)? {
                return Ok(None);
            }
        }
    }

    /// Reads the next rows. Returns false if there are none.
    fn read_more(&mut self, at_ns: i64) -> Result<bool, StoreError> {
        let Some(batch) = self.batches.next() else {
            return Ok(false);
        };
        let batch = batch?;
        let rows = InterruptsView::new(&batch)?;
        for row in 0..rows.len() {
            let end_ns = rows.end_ns[row];
            self.read_ns = self.read_ns.max(end_ns);
            let kind = rows.kind.get(row).unwrap_or_default();
            let Some(start_ns) = rows.start_ns.get(row) else {
                continue;
            };
            if end_ns < at_ns || ISRS.contains(&kind) || IN_THREADS.contains(&kind) {
                continue;
            }
            let cpu = usize::from(rows.cpu[row]);
            if self.cpus.len() <= cpu {
                self.cpus.resize(cpu + 1, VecDeque::new());
            }
            self.cpus[cpu].push_back(Dpc {
                start_ns,
                end_ns,
                image: rows.image_row.get(row),
            });
        }
        Ok(true)
    }
}
