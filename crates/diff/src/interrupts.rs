//! Sums of DPCs and service routines.

use std::collections::{BTreeMap, BTreeSet};

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{InterruptsView, StoreError, Table};

use crate::Kind;
use crate::distribution::{Distribution, DurationCollector};
use crate::functions::{Code, FunctionNames};
use crate::sums::{Key, Sums};

/// Kinds of service routines in the column `kind`. All other kinds are DPCs.
pub(crate) const ISRS: [&str; 3] = ["isr", "msi", "passive_isr"];

/// Kinds of routines that run in threads, in the column `kind`.
pub(crate) const IN_THREADS: [&str; 2] = ["threaded_dpc", "passive_isr"];

/// Times of DPCs or service routines, in nanoseconds. The key has the CPU, the kind (`Kind::Dpc` or `Kind::Isr`), and
/// the module in lower case.
pub(crate) type RoutineTimes = BTreeMap<(u16, Kind, Box<str>), f64>;

/// Facts about DPCs and service routines that the compared rows do not contain.
pub(crate) struct Interrupts {
    /// Recorded kinds of rows.
    pub(crate) recorded: BTreeSet<Kind>,
    /// Number of DPCs in each block.
    pub(crate) dpcs: Vec<f64>,
    /// Time of DPCs and service routines on each CPU, in nanoseconds.
    pub(crate) by_cpu: BTreeMap<u16, f64>,
    pub(crate) by_routine: RoutineTimes,
    /// Durations of DPCs, from their start to their end.
    pub(crate) durations: Distribution,
}

/// Adds DPCs and service routines to the sums.
pub(crate) fn add(
    reader: &Reader<'_>,
    functions: &mut FunctionNames<'_>,
    sums: &mut Sums,
) -> Result<Interrupts, StoreError> {
    let blocks = sums.blocks.clone();
    let table = reader.table(Table::Interrupts)?;
    let mut interrupts = Interrupts {
        recorded: BTreeSet::new(),
        dpcs: vec![0.0; blocks.count],
        by_cpu: BTreeMap::new(),
        by_routine: RoutineTimes::new(),
        durations: Distribution::default(),
    };
    let mut durations = DurationCollector::new(blocks.count);
    let mut slots = FxHashMap::default();
    let mut of_functions = FxHashMap::default();
    let mut cpus = FxHashMap::default();
    let mut by_image: FxHashMap<(u16, Kind, Option<u32>), f64> = FxHashMap::default();
    let columns = [
        "end_ns",
        "cpu",
        "kind",
        "duration_ns",
        "exclusive_ns",
        "image_row",
        "routine",
    ];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let routines = InterruptsView::new(&batch)?;
        for row in 0..routines.len() {
            let Some(kind) = routines.kind.get(row) else {
                continue;
            };
            let is_in_thread = IN_THREADS.contains(&kind);
            let (kind, of_function) = if ISRS.contains(&kind) {
                (Kind::Isr, Kind::IsrFunction)
            } else {
                (Kind::Dpc, Kind::DpcFunction)
            };
            interrupts.recorded.extend([kind, of_function]);
            let block = blocks.at(routines.end_ns[row]);
            let (Some(ns), Some(block)) = (routines.exclusive_ns.get(row), block) else {
                continue;
            };
            if kind == Kind::Dpc {
                interrupts.dpcs[block] += 1.0;
                let ns = routines.duration_ns.get(row);
                durations.add(block, ns.unwrap_or(0));
            }
            let image = routines.image_row.get(row);
            if !is_in_thread {
                let cpu = routines.cpu[row];
                *by_image.entry((cpu, kind, image)).or_default() += ns as f64;
                *interrupts.by_cpu.entry(cpu).or_default() += ns as f64;
                let slot = *cpus.entry(cpu).or_insert_with(|| {
                    sums.slot(Kind::Cpu, Some(&format!("CPU {cpu}")), Key::Cpu(cpu))
                });
                sums.blocks_mut(Kind::Cpu, slot)[block].add(1.0, ns as f64);
            }
            let slot = *slots
                .entry((kind, image))
                .or_insert_with(|| sums.slot(kind, reader.names.module_label(image), Key::Name));
            sums.blocks_mut(kind, slot)[block].add(1.0, ns as f64);
            let id = image.and_then(|image| functions.at(image, routines.routine[row]));
            if let Some(id) = id
                && let Code {
                    module,
                    function: Some(function),
                } = functions.code(id)
            {
                let slot = *of_functions.entry((of_function, id)).or_insert_with(|| {
                    let key = Key::Function(module.to_lowercase().into());
                    sums.slot(of_function, Some(function), key)
                });
                sums.blocks_mut(of_function, slot)[block].add(1.0, ns as f64);
            }
        }
    }
    for ((cpu, kind, image), ns) in by_image {
        if let Some(module) = reader.names.module_label(image) {
            let key = (cpu, kind, module.to_lowercase().into());
            *interrupts.by_routine.entry(key).or_default() += ns;
        }
    }
    interrupts.durations = durations.finish();
    // The row of a CPU is the sum of its DPCs and ISRs, so both must be recorded.
    if [Kind::Dpc, Kind::Isr]
        .iter()
        .all(|kind| interrupts.recorded.contains(kind))
    {
        interrupts.recorded.insert(Kind::Cpu);
    }
    Ok(interrupts)
}
