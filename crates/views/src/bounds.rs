//! Classes of values, by their upper bounds.

/// Ascending upper bounds that part all values into classes: up to and including the first bound,
/// then each above one bound up to and including the next, and last all above the last bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    upper: Vec<i64>,
}

impl Bounds {
    /// The most bounds.
    pub const LIMIT: usize = 1 << 12;

    /// These bounds, sorted and each once; those beyond the [`LIMIT`](Bounds::LIMIT) are left out.
    pub fn new(mut upper: Vec<i64>) -> Bounds {
        upper.sort_unstable();
        upper.dedup();
        upper.truncate(Bounds::LIMIT);
        Bounds { upper }
    }

    /// 0, `unit`, 2 `unit`, 4 `unit` and so on, `count` doublings in all or as many as there are
    /// numbers. With a unit of 1,000 ns these are the classes of xperf's `dpcisr` report, "> 0 usecs
    /// AND <= 1 usecs" onward. A unit below 1 is taken as 1.
    pub fn powers_of_two(unit: i64, count: u32) -> Bounds {
        let unit = unit.max(1);
        let doubled = (0..count.min(63)).map_while(|power| unit.checked_mul(1 << power));
        Bounds::new([0].into_iter().chain(doubled).collect())
    }

    /// `first`, `first + width` and so on, `count` in all or as many as there are numbers. A width
    /// below 1 is taken as 1.
    pub fn linear(first: i64, width: i64, count: usize) -> Bounds {
        let next = |bound: &i64| bound.checked_add(width.max(1));
        Bounds::new(
            std::iter::successors(Some(first), next)
                .take(count.min(Bounds::LIMIT))
                .collect(),
        )
    }

    /// The bounds.
    pub fn upper(&self) -> &[i64] {
        &self.upper
    }

    /// How many classes there are: one more than bounds.
    pub fn classes(&self) -> usize {
        self.upper.len() + 1
    }

    /// The class of a value.
    #[inline]
    pub fn class(&self, value: i64) -> usize {
        self.upper.partition_point(|bound| *bound < value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_the_classes_of_dpcisr() {
        let bounds = Bounds::powers_of_two(1_000, 4);
        assert_eq!(bounds.upper(), [0, 1_000, 2_000, 4_000, 8_000]);
        let classes = [0, 1, 1_000, 1_001, 2_000, 8_000, 8_001].map(|ns| bounds.class(ns));
        assert_eq!(classes, [0, 1, 1, 2, 2, 4, 5]);
        assert_eq!(bounds.class(-1), 0);
        assert_eq!(bounds.classes(), 6);
    }

    #[test]
    fn bounds_end_where_numbers_do() {
        let powers = Bounds::powers_of_two(1, 100);
        assert_eq!(powers.upper().last(), Some(&(1 << 62)));
        let linear = Bounds::linear(i64::MAX - 2, 2, 10);
        assert_eq!(linear.upper(), [i64::MAX - 2, i64::MAX]);
        assert_eq!(Bounds::linear(0, 0, 3).upper(), [0, 1, 2]);
        assert_eq!(
            Bounds::linear(0, 1, usize::MAX).upper().len(),
            Bounds::LIMIT
        );
        assert_eq!(Bounds::new(vec![]).classes(), 1);
        assert_eq!(Bounds::new(vec![5, 1, 5]).upper(), [1, 5]);
    }
}
