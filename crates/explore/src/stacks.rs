//! The stacks of selected rows: their frames by name, and their weights.

use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{ImageTracker, StacksView, Table};
use views::{NULL, NULL_ID, Rows, Stacks, TimeRange};

use crate::catalogue::{Source, TableDef};
use crate::decode::without_offset;
use crate::names::Interner;
use crate::selection::{Ask, Selection, Within};
use crate::timeline::ROWS;
use crate::trace::check;
use crate::{Condition, ExploreError};

/// The least address of the kernel, whose modules are in every process.
const KERNEL: u64 = 1 << 63;

/// Addresses of frames that were named, kept from request to request.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Option<Known>>);

struct Known {
    images: ImageTracker,
    /// By process (0 for all, of the kernel's addresses) and address.
    places: FxHashMap<(u32, u64), u32>,
    names: Interner,
}

/// What a request asks of stacks.
pub(crate) struct Weighing<'r> {
    pub(crate) table: &'r str,
    pub(crate) stack: &'r str,
    pub(crate) weight: &'r str,
    pub(crate) range: Option<TimeRange>,
    pub(crate) filter: &'r [Condition],
}

/// Stacks with their weights; frames are numbered in the order of their names.
pub(crate) struct Weighed {
    /// Names of frames, sorted.
    pub(crate) names: Vec<String>,
    /// Where each stack's frames begin and end.
    offsets: Vec<u32>,
    /// The innermost first.
    frames: Vec<u32>,
    /// By stack, of one stretch of time and, where there is one, of the other.
    pub(crate) weights: Vec<Vec<i64>>,
    /// The weight of all rows, with or without a stack, of each stretch.
    pub(crate) totals: Vec<i64>,
    pub(crate) unit: &'static str,
    /// The rows of the first stretch, as SQL.
    pub(crate) sql: String,
}

/// A stack as it is seen in a process.
type InProcess = (u32, u32);

/// Weights by stack.
#[derive(Default)]
struct Sums {
    by_stack: FxHashMap<InProcess, i64>,
    total: i64,
}

impl Weighed {
    /// The frames of the stacks.
    pub(crate) fn stacks(&self) -> Stacks<'_> {
        Stacks {
            offsets: &self.offsets,
            frames: &self.frames,
        }
    }

    /// How many stacks there are.
    pub(crate) fn len(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Turns every stack around.
    pub(crate) fn invert(&mut self) {
        for bounds in self.offsets.windows(2) {
            self.frames[bounds[0] as usize..bounds[1] as usize].reverse();
        }
    }

    /// The number of a frame.
    pub(crate) fn frame(&self, name: &str) -> Option<u32> {
        let place = self
            .names
            .binary_search_by(|known| known.as_str().cmp(name));
        place.ok().map(|place| place as u32)
    }

    /// What share of the weight has a stack.
    pub(crate) fn known(&self) -> f64 {
        let known: i64 = self.weights[0]
            .iter()
            .fold(0, |sum, weight| sum.saturating_add(*weight));
        match self.totals[0] {
            0 => 0.0,
            total => known as f64 / total as f64,
        }
    }

    /// Weighs the stacks of one stretch of time, or of two.
    pub(crate) fn new(
        ask: Ask<'_>,
        known: &Frames,
        weighing: &Weighing<'_>,
        compare: Option<TimeRange>,
    ) -> Result<Weighed, ExploreError> {
        let def = crate::catalogue::table(weighing.table)?;
        let stack = def.stack(weighing.stack)?;
        let number = match weighing.weight {
            ROWS => None,
            column => Some(def.number(column)?),
        };
        let table = ask.open(weighing.table)?;
        let select = |range| Selection::new(ask, &table, Within::Overlap, range, weighing.filter);
        let selection = select(weighing.range)?;
        let sql = format!(
            "SELECT\n  {stack},\n  {} AS weight,\n  count(*) AS rows\nFROM {}{}\nGROUP BY \
             {stack}\nORDER BY weight DESC",
            number.map_or("count(*)".to_owned(), |number| format!(
                "sum({})",
                number.name
            )),
            def.table.name(),
            crate::query::filter(&selection.sql)
        );
        let mut sums = vec![weigh(
            ask,
            &selection,
            stack,
            number.map(|n| n.name.as_str()),
        )?];
        if compare.is_some() {
            let selection = select(compare)?;
            sums.push(weigh(
                ask,
                &selection,
                stack,
                number.map(|n| n.name.as_str()),
            )?);
        }
        let mut stacks: Vec<InProcess> = sums
            .iter()
            .flat_map(|sums| sums.by_stack.keys().copied())
            .collect();
        stacks.sort_unstable();
        stacks.dedup();
        let weights = sums.iter().map(|sums| {
            let of = |stack: &InProcess| sums.by_stack.get(stack).copied().unwrap_or(0);
            stacks.iter().map(of).collect()
        });
        let weights = weights.collect();
        let named = known.of(ask, &stacks)?;
        Ok(Weighed {
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

/// The process that a row's stack is of, by its row in `processes`.
fn process_of(def: &'static TableDef, stack: &str) -> Option<&'static crate::catalogue::ColumnDef> {
    let prefix = stack.strip_suffix("stack_id").unwrap_or_default();
    let name = format!("{prefix}process");
    let found = def.columns.iter().find(|column| column.name == name);
    found.filter(|column| matches!(column.source, Source::Process { .. }))
}

fn weigh(
    ask: Ask<'_>,
    selection: &Selection<'_>,
    stack: &'static str,
    weight: Option<&str>,
) -> Result<Sums, ExploreError> {
    let table = &selection.table;
    let stacks = ask.columns.stored(table, stack, ask.cancel)?;
    let processes = match process_of(table.def, stack) {
        Some(column) => Some(ask.keys(table, column)?),
        None => None,
    };
    let weights = match weight {
        Some(name) => Some(ask.measures(table, table.def.number(name)?)?),
        None => None,
    };
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
    selection.pass(|| Ok(Sums::default()), add, merge)
}

/// Stacks whose frames have names.
struct Named {
    names: Vec<String>,
    offsets: Vec<u32>,
    frames: Vec<u32>,
}

impl Frames {
    /// The frames of stacks, which are sorted.
    fn of(&self, ask: Ask<'_>, stacks: &[InProcess]) -> Result<Named, ExploreError> {
        let identities = ask.trace.identities(ask.cancel)?;
        let functions = ask.trace.functions.as_deref();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| Known {
            images: ImageTracker::new(&identities.images),
            places: FxHashMap::default(),
            names: Interner::default(),
        });
        let table = ask.trace.table(Table::Stacks, ask.cancel)?;
        let mut offsets = vec![0];
        let mut frames: Vec<u32> = Vec::new();
        let mut read: Option<(usize, arrow_array::RecordBatch)> = None;
        for (stack, process) in stacks {
            check(ask.cancel)?;
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
                            frames.push(known.place(&identities, functions, process, *address));
                        }
                    }
                }
            }
            let Ok(end) = u32::try_from(frames.len()) else {
                return Err(ExploreError::OutOfBounds {
                    field: "range",
                    needed: "holds too many stacks; take a shorter one".to_owned(),
                });
            };
            offsets.push(end);
        }
        Ok(known.sorted(offsets, frames))
    }
}

impl Known {
    /// The place of a name among all names so far.
    fn place(
        &mut self,
        identities: &tables::Identities,
        functions: Option<&dyn tables::Functions>,
        process: u32,
        address: u64,
    ) -> u32 {
        let process = if address >= KERNEL { 0 } else { process };
        if let Some(place) = self.places.get(&(process, address)) {
            return *place;
        }
        // Images seldom come and go at one address: the last one is taken.
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
        let place = self.names.id(&name);
        self.places.insert((process, address), place);
        place
    }

    /// The frames numbered by the order of the names that there are.
    fn sorted(&self, offsets: Vec<u32>, mut frames: Vec<u32>) -> Named {
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
        Named {
            names: used
                .iter()
                .map(|place| all[*place as usize].to_string())
                .collect(),
            offsets,
            frames,
        }
    }
}
