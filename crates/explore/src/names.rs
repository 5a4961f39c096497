//! Labels of the dense ids of a key.

use std::borrow::Cow;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use views::{IdSet, NULL_ID};

use crate::Id;

/// Label of the group of unknown values.
pub(crate) const UNKNOWN: &str = "unknown";

/// Labels of the dense ids of a key.
#[derive(Debug)]
pub(crate) struct Names {
    kind: Kind,
    /// Position of each dense id in the order of labels; computed on first use.
    ranks: OnceLock<Vec<u32>>,
}

#[derive(Debug)]
enum Kind {
    /// Numbers in ascending order, which are also the public ids, and a function that returns the label of a
    /// number.
    Numbers(Vec<i64>, fn(i64) -> String),
    /// Addresses in ascending order.
    Addresses(Vec<u64>),
    /// Distinct texts, or a text for each row of another table.
    Texts(Vec<Box<str>>),
}

impl Names {
    pub(crate) fn numbers(rising: Vec<i64>, name: fn(i64) -> String) -> Names {
        Names::new(Kind::Numbers(rising, name))
    }

    pub(crate) fn addresses(rising: Vec<u64>) -> Names {
        Names::new(Kind::Addresses(rising))
    }

    pub(crate) fn texts(texts: Vec<Box<str>>) -> Names {
        Names::new(Kind::Texts(texts))
    }

    fn new(kind: Kind) -> Names {
        Names {
            kind,
            ranks: OnceLock::new(),
        }
    }

    /// Returns the number of ids.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.len(),
            Kind::Addresses(addresses) => addresses.len(),
            Kind::Texts(texts) => texts.len(),
        }
    }

    /// Returns the label of a dense id; `None` for the id of unknown values.
    pub(crate) fn known_label(&self, dense: u32) -> Option<Cow<'_, str>> {
        let place = dense as usize;
        Some(match &self.kind {
            Kind::Numbers(numbers, name) => Cow::Owned(name(*numbers.get(place)?)),
            Kind::Addresses(addresses) => Cow::Owned(format!("{:#x}", addresses.get(place)?)),
            Kind::Texts(texts) => Cow::Borrowed(texts.get(place)?),
        })
    }

    /// Returns the label of a dense id; [`UNKNOWN`] for the id of unknown values.
    pub(crate) fn label(&self, dense: u32) -> Cow<'_, str> {
        self.known_label(dense).unwrap_or(Cow::Borrowed(UNKNOWN))
    }

    /// Returns the number of a dense id; `None` if the key has no numbers.
    pub(crate) fn number(&self, dense: u32) -> Option<i64> {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.get(dense as usize).copied(),
            Kind::Addresses(_) | Kind::Texts(_) => None,
        }
    }

    /// Returns the public id of a dense id.
    pub(crate) fn id(&self, dense: u32) -> Id {
        if (dense as usize) < self.len() {
            Some(self.number(dense).unwrap_or(i64::from(dense)))
        } else {
            None
        }
    }

    /// Returns the dense id of a public id: [`NULL_ID`] for unknown values, `None` if the public id does not
    /// exist.
    pub(crate) fn dense(&self, id: Id) -> Option<u32> {
        let Some(id) = id else {
            return Some(NULL_ID);
        };
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.binary_search(&id).ok().map(|place| place as u32),
            Kind::Addresses(_) | Kind::Texts(_) => {
                let place = usize::try_from(id).ok()?;
                (place < self.len()).then_some(place as u32)
            }
        }
    }

    /// Returns the dense ids whose labels pass a test.
    pub(crate) fn ids_with_label(&self, test: impl Fn(&str) -> bool) -> IdSet {
        let ids = 0..self.len() as u32;
        IdSet::new(self.len() as u32).with(ids.filter(|dense| test(&self.label(*dense))))
    }

    /// Returns the dense ids whose numbers pass a test.
    pub(crate) fn ids_with_number(&self, test: impl Fn(i64) -> bool) -> IdSet {
        let passes = |dense: &u32| self.number(*dense).is_some_and(&test);
        IdSet::new(self.len() as u32).with((0..self.len() as u32).filter(passes))
    }

    /// Returns the position of a dense id in the order of labels, which ignores case. Numbers are ordered by
    /// their values. The id of unknown values is last.
    pub(crate) fn rank(&self, dense: u32) -> u32 {
        match &self.kind {
            Kind::Numbers(..) | Kind::Addresses(_) => dense,
            Kind::Texts(texts) => {
                let ranks = self.ranks.get_or_init(|| {
                    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
                    order.sort_by_cached_key(|dense| {
                        let text = &texts[*dense as usize];
                        (text.to_lowercase(), text.clone())
                    });
                    let mut ranks = vec![0; texts.len()];
                    for (rank, dense) in (0..).zip(&order) {
                        ranks[*dense as usize] = rank;
                    }
                    ranks
                });
                ranks.get(dense as usize).copied().unwrap_or(NULL_ID)
            }
        }
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.len() * 8,
            Kind::Addresses(addresses) => addresses.len() * 8,
            Kind::Texts(texts) => texts.iter().map(|text| text.len() + 32).sum(),
        }
    }
}

/// Map from texts to dense ids. A text gets the next id when it first occurs.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    places: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Interner {
    /// Returns the id of a text. A new text gets the next id.
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.places.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.places.insert(text.into(), id);
        self.texts.push(text.into());
        id
    }

    /// Returns all texts in the order of their ids.
    pub(crate) fn finish(self) -> Vec<Box<str>> {
        self.texts
    }

    /// Returns the texts that have an id, in the order of their ids.
    pub(crate) fn texts(&self) -> &[Box<str>] {
        &self.texts
    }
}
