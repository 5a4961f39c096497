//! Sums for each row and each block of time, in bounded memory.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::blocks::Blocks;
use crate::functions::Code;
use crate::{Kind, Sum};

/// Maximum number of rows of a kind while a recording is summed. Above this number, the half of the rows with the least
/// time is joined into one sum.
const MOST_ROWS: usize = 4_000;

/// Sums of one row.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// Name of the row, as recorded.
    pub(crate) name: String,
    /// Data that the kind and name of the row do not contain.
    pub(crate) key: Key,
    /// Sum of each block.
    pub(crate) blocks: Vec<Sum>,
}

/// Source of a row. It contains the data that the kind and name of the row do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Key {
    /// The kind and the name of the row identify the source.
    #[default]
    Name,
    /// Function of a module (in lower case).
    Function(Box<str>),
    /// Threads of a program (in lower case). If a module is given, its symbols determine the name of the row.
    Thread(Box<str>, Option<Box<str>>),
    /// Waits of a program (in lower case), and the code of the wait reason.
    Wait(Box<str>, u8),
    /// Waits of a program (in lower case), the code of the wait reason, and the code that waited.
    WaitCode(Box<str>, u8, Code),
    /// Routines on the CPU with this number.
    Cpu(u16),
    /// Requests of this kind to the disk with this number.
    Disk(u32, &'static str),
}

impl Key {
    /// Returns the module whose symbols determine the name of the row, in lower case.
    pub(crate) fn symbols_of(&self) -> Option<&str> {
        match self {
            Key::Function(module) | Key::Thread(_, Some(module)) => Some(module),
            Key::WaitCode(_, _, code) => {
                code.function.as_ref()?;
                Some(&code.module)
            }
            _ => None,
        }
    }
}

/// Index of a row in [`Sums`].
pub(crate) type Slot = u32;

/// Sums of all rows. A row that was joined with others costs a few bytes, so a trace with millions of names needs
/// little memory.
pub(crate) struct Sums {
    pub(crate) blocks: Blocks,
    /// Slots of the rows that were not joined.
    slots: FxHashMap<(Kind, Box<str>), Slot>,
    /// Rows by slot; `None` if a row was joined.
    rows: Vec<Option<Box<Row>>>,
    /// Rows that were not joined, by kind.
    own: BTreeMap<Kind, Vec<Slot>>,
    /// Sums of events without a name, by kind.
    unnamed: BTreeMap<Kind, Vec<Sum>>,
    /// Sums of the joined rows, by kind. Rows are joined if there are too many.
    joined: BTreeMap<Kind, Vec<Sum>>,
    /// Hashes of the kinds and names of joined rows. If two names have the same hash, both are joined.
    joined_names: FxHashSet<u64>,
}

/// Slot of the events without a name.
const UNNAMED: Slot = Slot::MAX;

/// Slot that all joined rows share.
const JOINED: Slot = Slot::MAX - 1;

impl Sums {
    pub(crate) fn new(blocks: Blocks) -> Sums {
        Sums {
            blocks,
            slots: FxHashMap::default(),
            rows: Vec::new(),
            own: BTreeMap::new(),
            unnamed: BTreeMap::new(),
            joined: BTreeMap::new(),
            joined_names: FxHashSet::default(),
        }
    }

    /// Returns the slot of the row with this name. Upper and lower case are not distinguished. All events
    /// without a name share one slot.
    pub(crate) fn slot(&mut self, kind: Kind, name: Option<&str>, source: Key) -> Slot {
        let Some(name) = name else {
            return UNNAMED;
        };
        let key = (kind, name.to_lowercase().into_boxed_str());
        if let Some(slot) = self.slots.get(&key) {
            return *slot;
        }
        if self.joined_names.contains(&FxBuildHasher.hash_one(&key)) {
            return JOINED;
        }
        let own = self.own.entry(kind).or_default();
        if own.len() >= MOST_ROWS {
            self.join_smaller(kind);
        }
        let slot = self.rows.len() as Slot;
        self.rows.push(Some(Box::new(Row {
            name: name.to_owned(),
            key: source,
            blocks: vec![Sum::default(); self.blocks.count],
        })));
        self.own.entry(kind).or_default().push(slot);
        self.slots.insert(key, slot);
        slot
    }

    /// Returns the name of a row. Returns `None` for joined rows and for events without a name.
    pub(crate) fn name(&self, slot: Slot) -> Option<&str> {
        let row = self.rows.get(slot as usize)?.as_ref()?;
        Some(&row.name)
    }

    /// Returns the sums of a row, one for each block.
    pub(crate) fn blocks_mut(&mut self, kind: Kind, slot: Slot) -> &mut [Sum] {
        let count = self.blocks.count;
        let rest = match self.rows.get_mut(slot as usize) {
            Some(Some(row)) => return &mut row.blocks,
            None if slot == UNNAMED => &mut self.unnamed,
            _ => &mut self.joined,
        };
        (rest.entry(kind)).or_insert_with(|| vec![Sum::default(); count])
    }

    /// Joins the smaller rows of a kind: the half of the rows with the least time. Later sums of these rows
    /// are joined too.
    fn join_smaller(&mut self, kind: Kind) {
        let Some(own) = self.own.get_mut(&kind) else {
            return;
        };
        let time = |slot: &Slot| {
            let row = self.rows[*slot as usize].as_ref();
            row.map_or(0.0, |row| Sum::total(&row.blocks).ns)
        };
        let mut sorted: Vec<(f64, Slot)> = own.iter().map(|slot| (time(slot), *slot)).collect();
        sorted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let smaller = sorted.split_off(MOST_ROWS / 2);
        *own = sorted.into_iter().map(|(_, slot)| slot).collect();
        let count = self.blocks.count;
        let joined = (self.joined.entry(kind)).or_insert_with(|| vec![Sum::default(); count]);
        for (_, slot) in smaller {
            let Some(row) = self.rows[slot as usize].take() else {
                continue;
            };
            let pairs = joined.iter_mut().zip(row.blocks);
            pairs.for_each(|(sum, more)| sum.add(more.count, more.ns));
            let key = (kind, row.name.to_lowercase().into_boxed_str());
            self.joined_names.insert(FxBuildHasher.hash_one(&key));
            self.slots.remove(&key);
        }
    }

    pub(crate) fn finish(self) -> Rows {
        let mut rows = self.rows;
        let slots = self.slots.into_iter();
        let named = slots.filter_map(|((kind, name), slot)| {
            let row = rows.get_mut(slot as usize)?.take()?;
            Some(((kind, String::from(name)), *row))
        });
        let totals = |sums: BTreeMap<Kind, Vec<Sum>>| {
            let sums = sums.into_iter();
            sums.map(|(kind, blocks)| (kind, Sum::total(&blocks)))
                .collect()
        };
        Rows {
            named: named.collect(),
            unnamed: totals(self.unnamed),
            joined: totals(self.joined),
        }
    }
}

/// Rows of a recording.
#[derive(Debug, PartialEq)]
pub(crate) struct Rows {
    /// Rows by kind and by name in lower case.
    pub(crate) named: BTreeMap<(Kind, String), Row>,
    /// Sums of events without a name, by kind.
    pub(crate) unnamed: BTreeMap<Kind, Sum>,
    /// Sums of the joined rows, by kind. Rows are joined if there are too many. The names of joined rows are
    /// lost.
    pub(crate) joined: BTreeMap<Kind, Sum>,
}

impl Rows {
    pub(crate) fn named_of_kind(
        &self,
        kind: Kind,
    ) -> impl Iterator<Item = (&(Kind, String), &Row)> {
        let rows = self.named.range((kind, String::new())..);
        rows.take_while(move |((row_kind, _), _)| *row_kind == kind)
    }

    /// Returns the total time of all rows of a kind, and the total time of the named rows of the kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> (f64, f64) {
        let named: f64 = self
            .named_of_kind(kind)
            .map(|(_, row)| Sum::total(&row.blocks).ns)
            .sum();
        let rest =
            [&self.unnamed, &self.joined].map(|rest| rest.get(&kind).map_or(0.0, |it| it.ns));
        (named + rest[0] + rest[1], named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a trace with a million program names needs memory for few rows, and that the total time is
    /// complete.
    #[test]
    fn a_million_names_are_few_rows() {
        let mut sums = Sums::new(Blocks::new(0..480_000_000_000, None));
        for number in 0..1_000_000_u32 {
            let name = format!("p{number}.exe");
            let slot = sums.slot(Kind::Program, Some(&name), Key::Name);
            sums.blocks_mut(Kind::Program, slot)[number as usize % 240].add(1.0, 2.0);
            // A large row is never joined, even if it recurs after many other rows.
            let slot = sums.slot(Kind::Program, Some("Large.exe"), Key::Name);
            sums.blocks_mut(Kind::Program, slot)[0].add(1.0, 3.0);
        }
        assert!(sums.rows.iter().flatten().count() <= MOST_ROWS);
        assert!(sums.slots.len() <= MOST_ROWS);
        // A joined row stays joined if its name occurs again. A new row would have only a part of its time.
        let slot = sums.slot(Kind::Program, Some("P3000.exe"), Key::Name);
        assert_eq!((slot, sums.name(slot)), (JOINED, None));
        sums.blocks_mut(Kind::Program, slot)[0].add(1.0, 0.0);
        let rows = sums.finish();
        assert!(rows.named.len() <= MOST_ROWS);
        let large = &rows.named[&(Kind::Program, "large.exe".to_owned())];
        assert_eq!(Sum::total(&large.blocks).ns, 3e6);
        let (all, named) = rows.of_kind(Kind::Program);
        assert_eq!(all, 5e6);
        assert!(named < all);
    }
}
