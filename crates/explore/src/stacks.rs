//! Stacks of the selected rows, with their weights and the names of their frames.

use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{ImageTracker, StacksView, Table};
use views::{NULL, NULL_ID, Rows, Stacks, TimeRange};

use crate::catalogue::{ColumnDef, ROWS, Source, TableDef};
use crate::context::Context;
use crate::decode::without_offset;
use crate::names::Interner;
use crate::query::RangeRule;
use crate::selected_rows::SelectedRows;
use crate::trace::check;
use crate::{Condition, ExploreError};

/// Lowest address of the kernel. Modules of the kernel are in every process.
const KERNEL: u64 = 1 << 63;

/// Cache of the names of frames. Requests share it.
#[derive(Default)]
pub(crate) struct FrameNames(Mutex<Option<NamedFrames>>);

struct NamedFrames {
    images: ImageTracker,
    /// Ids of names by process and address. For kernel addresses, the process is 0.
    ids: FxHashMap<(u32, u64), u32>,
    names: Interner,
}

/// Fields of a request that select stacks and their weights.
pub(crate) struct StackRequest<'r> {
    pub(crate) table: &'r str,
    pub(crate) stack: &'r str,
    pub(crate) weight: &'r str,
    pub(crate) range: Option<TimeRange>,
    pub(crate) filter: &'r [Condition],
}

/// Stacks with their weights. Frame numbers are indexes in the sorted list of names.
pub(crate) struct WeightedStacks {
    /// Names of frames, sorted.
    pub(crate) names: Vec<String>,
    /// Index in `frames` at which each stack starts, followed by the end of the last stack.
    offsets: Vec<u32>,
    /// Frames of all stacks. The innermost frame of a stack is first.
    frames: Vec<u32>,
    /// Weight of each stack, for each time range. There are one or two time ranges.
    pub(crate) weights: Vec<Vec<i64>>,
    /// Weight of all rows in each time range, including rows without a stack.
    pub(crate) totals: Vec<i64>,
    pub(crate) unit: &'static str,
    /// SQL query for the rows in the first time range.
    pub(crate) sql: String,
}

/// Id of a stack, and id of the process in which it was recorded.
type InProcess = (u32, u32);

/// Sums of the weights, by stack and for all rows.
#[derive(Default)]
struct Sums {
    by_stack: FxHashMap<InProcess, i64>,
    total: i64,
}

impl WeightedStacks {
    /// Returns the frames of the stacks.
    pub(crate) fn stacks(&self) -> Stacks<'_> {
        Stacks {
            offsets: &self.offsets,
            frames: &self.frames,
        }
    }

    /// Returns the number of stacks.
    pub(crate) fn len(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Reverses the order of the frames in every stack.
    pub(crate) fn invert(&mut self) {
        for bounds in self.offsets.windows(2) {
            self.frames[bounds[0] as usize..bounds[1] as usize].reverse();
        }
    }

    /// Returns the number of the frame with this name.
    pub(crate) fn frame(&self, name: &str) -> Option<u32> {
        let place = self
            .names
            .binary_search_by(|known| known.as_str().cmp(name));
        place.ok().map(|place| place as u32)
    }

    /// Returns the share of the weight that belongs to rows with a stack, from 0 to 1.
    pub(crate) fn known_share(&self) -> f64 {
        let known: i64 = self.weights[0]
            .iter()
            .fold(0, |sum, weight| sum.saturating_add(*weight));
        match self.totals[0] {
            0 => 0.0,
            total => known as f64 / total as f64,
        }
    }

    /// Reads the stacks and the sums of their weights in one or two time ranges.
    pub(crate) fn new(
        context: Context<'_>,
        frame_names: &FrameNames,
        request: &StackRequest<'_>,
        compare: Option<TimeRange>,
    ) -> Result<WeightedStacks, ExploreError> {
        let def = crate::catalogue::table(request.table)?;
        let stack = def.stack(request.stack)?;
        let number = match request.weight {
            ROWS => None,
            column => Some(def.number(column)?),
        };
        let table = context.open(request.table)?;
        let select = |range| SelectedRows::new(&table, RangeRule::Overlap, range, request.filter);
        let selected = select(request.range)?;
        let sql = format!(
            "SELECT\n  {stack},\n  {} AS weight,\n  count(*) AS rows\nFROM {}{}\nGROUP BY \
             {stack}\nORDER BY weight DESC",
            number.map_or("count(*)".to_owned(), |number| format!(
                "sum({})",
                number.name
            )),
            def.table.name(),
            crate::query::filter(&selected.sql)
        );
        let mut sums = vec![sum_weights(&selected, stack, number)?];
        if compare.is_some() {
            sums.push(sum_weights(&select(compare)?, stack, number)?);
        }
        let mut stacks: Vec<InProcess> = sums
            .iter()
            .flat_map(|sums| sums.by_stack.keys().copied())
            .collect();
        stacks.sort_unstable();
        stacks.dedup();
        let weights = sums.iter().map(|sums| {
            let sum_of = |stack: &InProcess| sums.by_stack.get(stack).copied().unwrap_or(0);
            stacks.iter().map(sum_of).collect()
        });
        let weights = weights.collect();
        let named = frame_names.frames(context, &stacks)?;
        Ok(WeightedStacks {
            names: named.names,
            offsets: named.offsets,
            frames: named.frames,
            weights,
            totals: sums.iter().map(|sums| sums.total).collect(),
            unit: number.map_or("", |number| number.unit),
            sql,
        })
    }
}

/// Returns the column that contains the process for a column of stacks.
fn process_of(def: &'static TableDef, stack: &str) -> Option<&'static ColumnDef> {
    let prefix = stack.strip_suffix("stack_id").unwrap_or_default();
    let name = format!("{prefix}process");
    let column = def.columns.iter().find(|column| column.name == name);
    column.filter(|column| matches!(column.source, Source::Process { .. }))
}

/// Sums up the numbers of a column by stack. Without a column, counts rows.
fn sum_weights(
    selected: &SelectedRows<'_>,
    stack: &'static str,
    weight: Option<&'static ColumnDef>,
) -> Result<Sums, ExploreError> {
    let table = &selected.table;
    let stacks = table.stored_numbers(stack)?;
    let processes = process_of(table.def, stack).map(|column| table.keys(column));
    let processes = processes.transpose()?;
    let weights = weight.map(|column| table.measures(column)).transpose()?;
    let add = |sums: &mut Sums, chunk: usize, rows: &Rows<'_>| {
        let stacks = &stacks.chunks[chunk];
        let processes = processes.as_ref().map(|processes| &processes.chunks[chunk]);
        let weights = weights.as_ref().map(|weights| &weights.chunks[chunk]);
        rows.each(|row| {
            let weight = weights.map_or(1, |weights| weights[row]);
            if weight <= 0 {
                return;
            }
            sums.total = sums.total.saturating_add(weight);
            let stack = stacks[row];
            if stack == NULL {
                return;
            }
            let process = processes.map_or(NULL_ID, |processes| processes[row]);
            let sum = sums.by_stack.entry((stack as u32, process)).or_default();
            *sum = sum.saturating_add(weight);
        })?;
        Ok(())
    };
    let merge = |all: &mut Sums, more: Sums| {
        all.total = all.total.saturating_add(more.total);
        for (stack, weight) in more.by_stack {
            let sum = all.by_stack.entry(stack).or_default();
            *sum = sum.saturating_add(weight);
        }
    };
    selected.pass(|| Ok(Sums::default()), add, merge)
}

/// Stacks whose frames have names.
struct NamedStacks {
    names: Vec<String>,
    offsets: Vec<u32>,
    frames: Vec<u32>,
}

impl FrameNames {
    /// Returns the frames of the given stacks. `stacks` must be sorted.
    fn frames(
        &self,
        context: Context<'_>,
        stacks: &[InProcess],
    ) -> Result<NamedStacks, ExploreError> {
        let identities = context.trace.identities(context.cancel)?;
        let functions = context.trace.functions.as_deref();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| NamedFrames {
            images: ImageTracker::new(&identities.images),
            ids: FxHashMap::default(),
            names: Interner::default(),
        });
        let table = context.trace.table(Table::Stacks, context.cancel)?;
        let mut offsets = vec![0];
        let mut frames: Vec<u32> = Vec::new();
        let mut read: Option<(usize, arrow_array::RecordBatch)> = None;
        for (stack, process) in stacks {
            check(context.cancel)?;
            let id = i64::from(*stack);
            let chunks = table.chunks();
            let chunk = chunks.partition_point(|chunk| chunk.last < id);
            if chunk < chunks.len() {
                if read.as_ref().is_none_or(|(number, _)| *number != chunk) {
                    read = Some((chunk, table.read(chunk, &["stack_id", "addresses"])?));
                }
                if let Some((_, batch)) = &read {
                    let view = StacksView::new(batch).map_err(tables::StoreError::from)?;
                    if let Ok(row) = view.stack_id.binary_search(&id) {
                        let process = identities.process(Some(*process), None).id.unwrap_or(0);
                        for address in view.addresses.get(row) {
                            frames.push(known.id(&identities, functions, process, *address));
                        }
                    }
                }
            }
            let Ok(end) = u32::try_from(frames.len()) else {
                return Err(ExploreError::OutOfBounds {
                    field: "range",
                    needed: "contains too many stacks; choose a shorter one".to_owned(),
                });
            };
            offsets.push(end);
        }
        Ok(known.sorted(offsets, frames))
    }
}

impl NamedFrames {
    /// Returns the id of the name for an address.
    fn id(
        &mut self,
        identities: &tables::Identities,
        functions: Option<&dyn tables::Functions>,
        process: u32,
        address: u64,
    ) -> u32 {
        let process = if address >= KERNEL { 0 } else { process };
        if let Some(id) = self.ids.get(&(process, address)) {
            return *id;
        }
        // An address rarely belongs to several images over time. If it does, use the last image.
        let image = self.images.lookup(process, address, i64::MAX - 1);
        let image = image.or_else(|| self.images.lookup(process, address, 0));
        let image = image.and_then(|row| u32::try_from(row).ok());
        let name = match image {
            Some(row) => {
                let symbol = functions.and_then(|functions| functions.name(row, address));
                match symbol.as_deref().filter(|symbol| symbol.contains('!')) {
                    Some(symbol) => without_offset(symbol).to_owned(),
                    None => format!("{}!?", identities.module_label(Some(row)).unwrap_or("?")),
                }
            }
            None => "?".to_owned(),
        };
        let id = self.names.id(&name);
        self.ids.insert((process, address), id);
        id
    }

    /// Replaces each frame by an index in the sorted list of the names that the frames use.
    fn sorted(&self, offsets: Vec<u32>, mut frames: Vec<u32>) -> NamedStacks {
        let all = self.names.texts();
        let mut used: Vec<u32> = frames
            .iter()
            .copied()
            .collect::<FxHashSet<u32>>()
            .into_iter()
            .collect();
        used.sort_unstable_by(|a, b| all[*a as usize].cmp(&all[*b as usize]));
        let places: FxHashMap<u32, u32> = used.iter().copied().zip(0..).collect();
        for frame in &mut frames {
            *frame = places[frame];
        }
        NamedStacks {
            names: used
                .iter()
                .map(|place| all[*place as usize].to_string())
                .collect(),
            offsets,
            frames,
        }
    }
}
