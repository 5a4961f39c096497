//! Sums for each row and each block of time, in bounded memory.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::blocks::Blocks;
use crate::{Kind, Sum};

/// Maximum number of rows of a kind while a recording is summed. If there are more rows, the smaller half of
/// the rows is joined into one sum.
const MOST_ROWS: usize = 4_000;

/// Sums of one row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Name of the row, as recorded.
    pub(crate) name: String,
    /// Source of the row.
    pub(crate) key: Key,
    /// Sum of each block.
    pub(crate) blocks: Vec<Sum>,
}

/// Source of a row: the data that the kind and name of the row do not contain.
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
            _ => None,
        }
    }
}

/// Index of a row in [`Sums`].
pub(crate) type Slot = u32;

/// Sums of all rows.
pub(crate) struct Sums {
    pub(crate) blocks: Blocks,
    slots: FxHashMap<(Kind, Box<str>), Slot>,
    rows: Vec<(Kind, Row)>,
    /// Rows that were not joined, by kind.
    own: BTreeMap<Kind, Vec<Slot>>,
    /// Sums of events without a name, by kind.
    unnamed: BTreeMap<Kind, Vec<Sum>>,
    /// Sums of the joined rows, by kind. Rows are joined if there are too many.
    joined: BTreeMap<Kind, Vec<Sum>>,
}

/// Slot of the events without a name.
const UNNAMED: Slot = Slot::MAX;

impl Sums {
    pub(crate) fn new(blocks: Blocks) -> Sums {
        Sums {
            blocks,
            slots: FxHashMap::default(),
            rows: Vec::new(),
            own: BTreeMap::new(),
            unnamed: BTreeMap::new(),
            joined: BTreeMap::new(),
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
        let own = self.own.entry(kind).or_default();
        if own.len() >= MOST_ROWS {
            self.join_smaller(kind);
        }
        let slot = self.rows.len() as Slot;
        self.rows.push((
            kind,
            Row {
                name: name.to_owned(),
                key: source,
                blocks: vec![Sum::default(); self.blocks.count],
            },
        ));
        self.own.entry(kind).or_default().push(slot);
        self.slots.insert(key, slot);
        slot
    }

    /// Returns the sums of a row, one for each block.
    pub(crate) fn of(&mut self, kind: Kind, slot: Slot) -> &mut [Sum] {
        let count = self.blocks.count;
        let rest = match self.rows.get_mut(slot as usize) {
            Some((_, row)) if !row.blocks.is_empty() => return &mut row.blocks,
            Some(_) => &mut self.joined,
            None => &mut self.unnamed,
        };
        (rest.entry(kind)).or_insert_with(|| vec![Sum::default(); count])
    }

    /// Joins the smaller rows of a kind: the half of the rows with the least time. Later sums of these rows
    /// are joined too.
    fn join_smaller(&mut self, kind: Kind) {
        let Some(own) = self.own.get_mut(&kind) else {
            return;
        };
        let rows = &mut self.rows;
        own.sort_by(|a, b| {
            let ns = |slot: &Slot| Sum::of(&rows[*slot as usize].1.blocks).ns;
            ns(b).total_cmp(&ns(a))
        });
        let count = self.blocks.count;
        let joined = (self.joined.entry(kind)).or_insert_with(|| vec![Sum::default(); count]);
        for slot in own.split_off(MOST_ROWS / 2) {
            let blocks = std::mem::take(&mut rows[slot as usize].1.blocks);
            let pairs = joined.iter_mut().zip(blocks);
            pairs.for_each(|(sum, more)| sum.add(more.count, more.ns));
        }
    }

    pub(crate) fn finish(self) -> Rows {
        let mut rows = self.rows;
        let slots = self.slots.into_iter();
        let named = slots.filter_map(|(key, slot)| {
            let (kind, row) = rows.get_mut(slot as usize)?;
            let row = Row {
                name: std::mem::take(&mut row.name),
                key: row.key.clone(),
                blocks: std::mem::take(&mut row.blocks),
            };
            (!row.blocks.is_empty()).then_some(((*kind, String::from(key.1)), row))
        });
        let whole = |sums: BTreeMap<Kind, Vec<Sum>>| {
            let sums = sums.into_iter();
            sums.map(|(kind, blocks)| (kind, Sum::of(&blocks)))
                .collect()
        };
        Rows {
            named: named.collect(),
            unnamed: whole(self.unnamed),
            joined: whole(self.joined),
        }
    }
}

/// Rows of a recording.
#[derive(Debug)]
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
    /// Returns the named rows of a kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = (&(Kind, String), &Row)> {
        let rows = self.named.range((kind, String::new())..);
        rows.take_while(move |((of, _), _)| *of == kind)
    }

    /// Returns the total time of all rows of a kind, and the total time of the named rows of the kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> (f64, f64) {
        let named: f64 = self.of(kind).map(|(_, row)| Sum::of(&row.blocks).ns).sum();
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
        let mut sums = Sums::new(Blocks::of(0..480_000_000_000, None));
        for number in 0..1_000_000_u32 {
            let name = format!("p{number}.exe");
            let slot = sums.slot(Kind::Program, Some(&name), Key::Name);
            sums.of(Kind::Program, slot)[number as usize % 240].add(1.0, 2.0);
            // A large row is never joined, even if it recurs after many other rows.
            let slot = sums.slot(Kind::Program, Some("Large.exe"), Key::Name);
            sums.of(Kind::Program, slot)[0].add(1.0, 3.0);
        }
        let kept = sums.rows.iter().filter(|(_, row)| !row.blocks.is_empty());
        assert!(kept.count() <= MOST_ROWS);
        let rows = sums.finish();
        assert!(rows.named.len() <= MOST_ROWS);
        let large = &rows.named[&(Kind::Program, "large.exe".to_owned())];
        assert_eq!(Sum::of(&large.blocks).ns, 3e6);
        let (all, named) = rows.of_kind(Kind::Program);
        assert_eq!(all, 5e6);
        assert!(named < all);
    }
}
