//! What the dense ids of a key column stand for.

use std::borrow::Cow;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use views::{IdSet, NULL_ID};

use crate::Id;

/// What groups of unknown id are called.
pub(crate) const UNKNOWN: &str = "unknown";

/// What the dense ids of a key column stand for.
#[derive(Debug)]
pub(crate) struct Names {
    kind: Kind,
    /// By dense id its place in the order of labels.
    ranks: OnceLock<Vec<u32>>,
}

#[derive(Debug)]
enum Kind {
    /// Numbers in rising order, which are the ids that requests see, and how they are called.
    Numbers(Vec<i64>, fn(i64) -> String),
    /// Addresses in rising order.
    Addresses(Vec<u64>),
    /// Texts, each once, or one for each row of another table.
    Texts(Vec<Box<str>>),
}

impl Names {
    pub(crate) fn numbers(rising: Vec<i64>, name: fn(i64) -> String) -> Names {
        Names::of(Kind::Numbers(rising, name))
    }

    pub(crate) fn addresses(rising: Vec<u64>) -> Names {
        Names::of(Kind::Addresses(rising))
    }

    pub(crate) fn texts(texts: Vec<Box<str>>) -> Names {
        Names::of(Kind::Texts(texts))
    }

    fn of(kind: Kind) -> Names {
        Names {
            kind,
            ranks: OnceLock::new(),
        }
    }

    /// How many ids there are.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.len(),
            Kind::Addresses(addresses) => addresses.len(),
            Kind::Texts(texts) => texts.len(),
        }
    }

    /// The label of a dense id; none of the unknown.
    pub(crate) fn known_label(&self, dense: u32) -> Option<Cow<'_, str>> {
        let place = dense as usize;
        Some(match &self.kind {
            Kind::Numbers(numbers, name) => Cow::Owned(name(*numbers.get(place)?)),
            Kind::Addresses(addresses) => Cow::Owned(format!("{:#x}", addresses.get(place)?)),
            Kind::Texts(texts) => Cow::Borrowed(texts.get(place)?),
        })
    }

    /// The label of a dense id, [`UNKNOWN`] of the unknown.
    pub(crate) fn label(&self, dense: u32) -> Cow<'_, str> {
        self.known_label(dense).unwrap_or(Cow::Borrowed(UNKNOWN))
    }

    /// The number that a dense id stands for, if it is one.
    pub(crate) fn number(&self, dense: u32) -> Option<i64> {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.get(dense as usize).copied(),
            Kind::Addresses(_) | Kind::Texts(_) => None,
        }
    }

    /// The id that requests see.
    pub(crate) fn id(&self, dense: u32) -> Id {
        if (dense as usize) < self.len() {
            Some(self.number(dense).unwrap_or(i64::from(dense)))
        } else {
            None
        }
    }

    /// The dense id of an id that a request names; [`NULL_ID`] of the unknown, none if there is no
    /// such id.
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

    /// The dense ids whose labels pass a test.
    pub(crate) fn whose(&self, test: impl Fn(&str) -> bool) -> IdSet {
        let ids = 0..self.len() as u32;
        IdSet::new(self.len() as u32).with(ids.filter(|dense| test(&self.label(*dense))))
    }

    /// The dense ids whose numbers pass a test.
    pub(crate) fn whose_number(&self, test: impl Fn(i64) -> bool) -> IdSet {
        let passes = |dense: &u32| self.number(*dense).is_some_and(&test);
        IdSet::new(self.len() as u32).with((0..self.len() as u32).filter(passes))
    }

    /// The place of a dense id in the order of labels (of numbers by their value), whatever their
    /// case; the unknown is last.
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

    /// Roughly how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Numbers(numbers, _) => numbers.len() * 8,
            Kind::Addresses(addresses) => addresses.len() * 8,
            Kind::Texts(texts) => texts.iter().map(|text| text.len() + 32).sum(),
        }
    }
}

/// Gives texts dense ids in the order in which they first come.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    places: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Interner {
    /// The id of a text.
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.places.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.places.insert(text.into(), id);
        self.texts.push(text.into());
        id
    }

    /// The texts, by their ids.
    pub(crate) fn finish(self) -> Vec<Box<str>> {
        self.texts
    }

    /// The texts so far.
    pub(crate) fn texts(&self) -> &[Box<str>] {
        &self.texts
    }
}
