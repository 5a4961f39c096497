//! Classes of values, defined by their upper bounds.

/// Ascending upper bounds that split all values into classes. The first class holds values up to and
/// including the first bound. Each next class holds values above one bound, up to and including the
/// next. The last class holds values above the last bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    upper: Vec<i64>,
}

impl Bounds {
    /// Maximum number of bounds.
    pub const LIMIT: usize = 1 << 12;

    /// Sorts the bounds and removes duplicates. Bounds beyond [`LIMIT`](Bounds::LIMIT) are dropped.
    pub fn new(mut upper: Vec<i64>) -> Bounds {
        upper.sort_unstable();
        upper.dedup();
        upper.truncate(Bounds::LIMIT);
        Bounds { upper }
    }

    /// Returns the bounds in ascending order.
    pub fn upper(&self) -> &[i64] {
        &self.upper
    }

    /// Returns the number of classes, which is the number of bounds plus 1.
    pub fn classes(&self) -> usize {
        self.upper.len() + 1
    }

    /// Returns the index of the class of a value.
    #[inline]
    pub fn class(&self, value: i64) -> usize {
        self.upper.partition_point(|bound| *bound < value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_class_below_it() {
        let bounds = Bounds::new(vec![0, 1_000, 2_000, 4_000, 8_000]);
        let classes = [0, 1, 1_000, 1_001, 2_000, 8_000, 8_001].map(|ns| bounds.class(ns));
        assert_eq!(classes, [0, 1, 1, 2, 2, 4, 5]);
        assert_eq!(bounds.class(-1), 0);
        assert_eq!(bounds.classes(), 6);
    }

    #[test]
    fn bounds_are_sorted_unique_and_limited() {
        assert_eq!(
            Bounds::new((0..1 << 13).collect()).upper().len(),
            Bounds::LIMIT
        );
        assert_eq!(Bounds::new(vec![]).classes(), 1);
        assert_eq!(Bounds::new(vec![5, 1, 5]).upper(), [1, 5]);
    }
}
