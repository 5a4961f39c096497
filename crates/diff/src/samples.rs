//! Sums of samples, by module and function.

use std::collections::BTreeSet;

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{SamplesView, StoreError, Table};

use crate::Kind;
use crate::dpc_code::{self, DpcCode, Dpcs};
use crate::functions::FunctionNames;
use crate::sums::{Key, Slot, Sums};

/// Sums over samples, in addition to the sums of the compared rows.
#[derive(Default)]
pub(crate) struct Samples {
    /// Recorded kinds of rows.
    pub(crate) recorded: BTreeSet<Kind>,
    /// Time of each sampled stack, in nanoseconds. The key is the id of the stack and the `Place` in which it
    /// was sampled.
    pub(crate) stacks: FxHashMap<(u32, Place), f64>,
    pub(crate) dpc_code: DpcCode,
}

/// Code in which a stack was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// A DPC or service routine.
    Interrupt,
    /// A thread of the process in this row of `processes`.
    Process(u32),
}

/// Adds samples of busy CPUs to the sums.
pub(crate) fn add(
    reader: &Reader<'_>,
    functions: &mut FunctionNames<'_>,
    sums: &mut Sums,
) -> Result<Samples, StoreError> {
    let blocks = sums.blocks.clone();
    let table = reader.table(Table::Samples)?;
    let mut result = Samples::default();
    let mut modules: FxHashMap<(Kind, Option<u32>), Slot> = FxHashMap::default();
    let mut code: FxHashMap<(Kind, u32), Slot> = FxHashMap::default();
    let interrupts = reader.table(Table::Interrupts)?;
    let mut dpcs = Dpcs::new(reader.batches(&interrupts, i64::MIN..i64::MAX, &dpc_code::COLUMNS));
    let mut in_dpcs: FxHashMap<[u32; 2], f64> = FxHashMap::default();
    let columns = [
        "time_ns",
        "cpu",
        "address",
        "thread_id",
        "process_row",
        "image_row",
        "weight_ns",
        "stack_id",
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
            result.recorded.extend([
                Kind::InterruptCode,
                Kind::InterruptFunction,
                Kind::ThreadCode,
                Kind::ThreadFunction,
            ]);
            let process = samples.process_row.get(row);
            let (kind, of_function, place) = match is_in_interrupt {
                true => {
                    let kinds = (Kind::InterruptCode, Kind::InterruptFunction);
                    (kinds.0, kinds.1, Some(Place::Interrupt))
                }
                false if samples.thread_id[row] == 0 => continue,
                false => {
                    let place = process.map(Place::Process);
                    (Kind::ThreadCode, Kind::ThreadFunction, place)
                }
            };
            let block = blocks.at(samples.time_ns[row]);
            let (Some(ns), Some(block)) = (samples.weight_ns.get(row), block) else {
                continue;
            };
            let ns = ns as f64;
            let image = samples.image_row.get(row);
            if samples.in_dpc.get(row) == Some(true)
                && let Some(image) = image
                && let Some(cpu) = samples.cpu.get(row)
                && let Some(of) = dpcs.image_at(cpu, samples.time_ns[row])?
            {
                *in_dpcs.entry([of, image]).or_default() += ns;
            }
            let slot = *modules
                .entry((kind, image))
                .or_insert_with(|| sums.slot(kind, reader.names.module_label(image), Key::Name));
            sums.blocks_mut(kind, slot)[block].add(1.0, ns);
            if let Some(id) = image.and_then(|image| functions.at(image, samples.address[row])) {
                let name = functions.code(id);
                if let Some(function) = &name.function {
                    let slot = *code.entry((of_function, id)).or_insert_with(|| {
                        let key = Key::Function(name.module.to_lowercase().into());
                        sums.slot(of_function, Some(function), key)
                    });
                    sums.blocks_mut(of_function, slot)[block].add(1.0, ns);
                }
            }
            if let (Some(stack), Some(place)) = (samples.stack_id.get(row), place) {
                *result.stacks.entry((stack, place)).or_default() += ns;
            }
        }
    }
    for (images, ns) in in_dpcs {
        let modules = images.map(|image| reader.names.module_label(Some(image)));
        if let [Some(of), Some(code)] = modules {
            let key = (of.to_lowercase().into(), code.to_lowercase().into());
            *result.dpc_code.entry(key).or_default() += ns;
        }
    }
    Ok(result)
}
