//! Common value of a key: the value that all rows of a group have.

use rustc_hash::FxHashSet;

/// Values of one key in the rows of each group.
#[derive(Clone)]
pub(crate) struct CommonValue {
    /// First id that occurred in each group; `None` if the group has no row yet.
    pub(crate) first: Vec<Option<u32>>,
    /// Pairs of a group and an id, for each id in the group that differs from the group's first id.
    others: FxHashSet<(u32, u32)>,
}

impl CommonValue {
    pub(crate) fn new(groups: usize) -> CommonValue {
        CommonValue {
            first: vec![None; groups],
            others: FxHashSet::default(),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, group: u32, id: u32) {
        match &mut self.first[group as usize] {
            None => self.first[group as usize] = Some(id),
            Some(first) if *first == id => {}
            Some(_) => {
                self.others.insert((group, id));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: CommonValue) {
        for (group, first) in (0..).zip(&other.first) {
            if let Some(id) = first {
                self.add(group, *id);
            }
        }
        for (group, id) in other.others {
            self.add(group, id);
        }
    }

    /// Returns, for each group, the number of different ids minus one.
    pub(crate) fn other_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.first.len()];
        for (group, _) in &self.others {
            counts[*group as usize] += 1;
        }
        counts
    }
}
