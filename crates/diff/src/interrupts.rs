//! Sums of DPCs and service routines.

use std::collections::{BTreeMap, BTreeSet};

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{InterruptsView, StoreError, Table};

use crate::Kind;
use crate::distribution::{Collected, Distribution};
use crate::sums::{Key, Sums};

/// Kinds of service routines in the column `kind`. All other kinds are DPCs.
pub(crate) const ISRS: [&str; 3] = ["isr", "msi", "passive_isr"];

/// Kinds of routines that run in threads, in the column `kind`.
pub(crate) const IN_THREADS: [&str; 2] = ["threaded_dpc", "passive_isr"];

/// Sums over DPCs and service routines, in addition to the sums of the compared rows.
pub(crate) struct Interrupts {
    /// Recorded kinds of rows.
    pub(crate) recorded: BTreeSet<Kind>,
    /// Number of DPCs in each block.
    pub(crate) dpcs: Vec<f64>,
    /// Time of DPCs and service routines on each CPU, in nanoseconds.
    pub(crate) by_cpu: BTreeMap<u16, f64>,
    /// Durations of DPCs, from their start to their end.
    pub(crate) durations: Distribution,
}

/// Adds DPCs and service routines to the sums.
pub(crate) fn add(reader: &Reader<'_>, sums: &mut Sums) -> Result<Interrupts, StoreError> {
    let blocks = sums.blocks.clone();
    let table = reader.table(Table::Interrupts)?;
    let mut found = Interrupts {
        recorded: BTreeSet::new(),
        dpcs: vec![0.0; blocks.count],
        by_cpu: BTreeMap::new(),
        durations: Distribution::default(),
    };
    let mut durations = Collected::new(blocks.count);
    let mut slots = FxHashMap::default();
    let mut cpus = FxHashMap::default();
    let columns = [
        "end_ns",
        "cpu",
        "kind",
        "duration_ns",
        "exclusive_ns",
        "image_row",
    ];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let routines = InterruptsView::new(&batch)?;
        for row in 0..routines.len() {
            let Some(kind) = routines.kind.get(row) else {
                continue;
            };
            let is_in_thread = IN_THREADS.contains(&kind);
            let kind = match ISRS.contains(&kind) {
                true => Kind::Isr,
                false => Kind::Dpc,
            };
            found.recorded.insert(kind);
            let block = blocks.at(routines.end_ns[row]);
            let (Some(ns), Some(block)) = (routines.exclusive_ns.get(row), block) else {
                continue;
            };
            if kind == Kind::Dpc {
                found.dpcs[block] += 1.0;
                let ns = routines.duration_ns.get(row);
                durations.add(block, ns.unwrap_or(0));
            }
            if !is_in_thread {
                let cpu = routines.cpu[row];
                *found.by_cpu.entry(cpu).or_default() += ns as f64;
                let slot = *cpus.entry(cpu).or_insert_with(|| {
                    sums.slot(Kind::Cpu, Some(&format!("CPU {cpu}")), Key::Cpu(cpu))
                });
                sums.of(Kind::Cpu, slot)[block].add(1.0, ns as f64);
            }
            let image = routines.image_row.get(row);
            let slot = *slots
                .entry((kind, image))
                .or_insert_with(|| sums.slot(kind, reader.names.module_label(image), Key::Name));
            sums.of(kind, slot)[block].add(1.0, ns as f64);
        }
    }
    found.durations = durations.finish();
    // The rows of CPUs sum DPCs and ISRs. So both must be recorded.
    if found.recorded.len() == 2 {
        found.recorded.insert(Kind::Cpu);
    }
    Ok(found)
}
