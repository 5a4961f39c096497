//! Set of dense ids, used as a filter.

/// Set of dense ids, stored as one bit per id.
#[derive(Clone, Debug)]
pub struct IdSet {
    bound: u32,
    /// One bit per id, followed by one bit for the unknown id.
    bits: Vec<u64>,
}

impl IdSet {
    /// Creates an empty set of ids below `bound`.
    pub fn new(bound: u32) -> IdSet {
        IdSet {
            bound,
            bits: vec![0; bound as usize / 64 + 1],
        }
    }

    /// Adds an id. An id at or above the bound, such as [`NULL_ID`](crate::NULL_ID), adds the unknown
    /// id.
    pub fn insert(&mut self, id: u32) {
        let bit = id.min(self.bound) as usize;
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    /// Returns the set with the ids added.
    #[must_use]
    pub fn with(mut self, ids: impl IntoIterator<Item = u32>) -> IdSet {
        ids.into_iter().for_each(|id| self.insert(id));
        self
    }

    /// Returns true if the set contains the id. Ids at or above the bound count as unknown.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        let bit = id.min(self.bound) as usize;
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NULL_ID;

    #[test]
    fn contains_added_ids_and_the_unknown_only_if_added() {
        let set = IdSet::new(130).with([0, 63, 64, 129]);
        let ids: Vec<u32> = (0..200).filter(|id| set.contains(*id)).collect();
        assert_eq!(ids, [0, 63, 64, 129]);
        assert!(!set.contains(NULL_ID));
        let set = set.with([NULL_ID]);
        assert!(set.contains(NULL_ID) && set.contains(130) && !set.contains(128));
        assert!(!IdSet::new(0).contains(0));
    }
}
