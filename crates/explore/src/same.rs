//! Whether all rows of a group have the same of a key.

use rustc_hash::FxHashSet;

/// What all rows of each group have of a key, as far as they were seen.
#[derive(Clone)]
pub(crate) struct Same {
    /// By group: nothing yet, one id, or several.
    pub(crate) first: Vec<Option<u32>>,
    /// Groups of several ids, with each.
    several: FxHashSet<(u32, u32)>,
}

impl Same {
    pub(crate) fn new(groups: usize) -> Same {
        Same {
            first: vec![None; groups],
            several: FxHashSet::default(),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, group: u32, id: u32) {
        match &mut self.first[group as usize] {
            None => self.first[group as usize] = Some(id),
            Some(first) if *first == id => {}
            Some(_) => {
                self.several.insert((group, id));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Same) {
        for (group, first) in (0..).zip(&other.first) {
            if let Some(id) = first {
                self.add(group, *id);
            }
        }
        for (group, id) in other.several {
            self.add(group, id);
        }
    }

    /// By group how many ids there are besides the first.
    pub(crate) fn more(&self) -> Vec<u32> {
        let mut more = vec![0; self.first.len()];
        for (group, _) in &self.several {
            more[*group as usize] += 1;
        }
        more
    }
}
