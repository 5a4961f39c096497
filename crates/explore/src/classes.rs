//! Classes of values, whose bounds increase by a constant factor.

use views::{Bounds, Rows};

use crate::ExploreError;
use crate::decoded_columns::Measures;
use crate::selected_rows::SelectedRows;

/// Maximum number of classes.
pub(crate) const MAX_CLASSES: u64 = 256;

/// Bounds of classes. Class `i` contains the values `v` with `bounds[i] < v <= bounds[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classes(Vec<i64>);

impl Classes {
    /// Creates at most `most` classes for all values from `least` to `greatest`. Values below 1 have no
    /// class. All decades are divided in the same way, so each power of ten is a bound. Bounds are integers,
    /// so a class of small numbers may contain only one value.
    pub(crate) fn new(least: i64, greatest: i64, most: usize) -> Classes {
        let (least, greatest) = (least.max(1), greatest.max(least.max(1)));
        let most = most.max(1);
        let edges = |steps: u32| {
            let edge = |step: i64| {
                let edge = 10f64.powf(step as f64 / f64::from(steps)).round();
                // The conversion limits the number to the range of `i64`.
                edge as i64
            };
            // Find the last edge below `least`, and the first edge that is at least `greatest`.
            let mut first = ((least as f64).log10() * f64::from(steps)).floor() as i64 + 1;
            while first >= 0 && edge(first) >= least {
                first -= 1;
            }
            let mut last = ((greatest as f64).log10() * f64::from(steps)) as i64;
            while edge(last) < greatest {
                last += 1;
            }
            let mut edges: Vec<i64> = (first.max(0)..=last).map(edge).collect();
            if first < 0 {
                edges.insert(0, 0);
            }
            edges.dedup();
            edges
        };
        const FINEST: u32 = 48;
        let fits = |steps: &u32| edges(*steps).len() <= most + 1;
        match (1..=FINEST).rev().find(fits) {
            Some(steps) => Classes(edges(steps)),
            None => Classes(vec![least - 1, greatest]),
        }
    }

    /// Creates classes for the requested range of values. Without a range, the classes cover all values of
    /// the rows.
    pub(crate) fn for_rows(
        rows: &SelectedRows<'_>,
        numbers: &Measures,
        requested: Option<[i64; 2]>,
        most: u32,
    ) -> Result<Classes, ExploreError> {
        let most = most as usize;
        if let Some([least, greatest]) = requested {
            if least > greatest || greatest < 1 {
                return Err(ExploreError::OutOfBounds {
                    field: "values",
                    needed: format!(
                        "must be the smallest and the largest value, above 0, not {least} and \
                         {greatest}"
                    ),
                });
            }
            return Ok(Classes::new(least, greatest, most));
        }
        let make = || Ok((i64::MAX, 0));
        let add = |(least, greatest): &mut (i64, i64), chunk: usize, rows: &Rows<'_>| {
            let numbers = &numbers.chunks[chunk];
            rows.each(|row| {
                let number = numbers[row];
                if number > 0 {
                    *least = (*least).min(number);
                    *greatest = (*greatest).max(number);
                }
            })?;
            Ok(())
        };
        let merge = |all: &mut (i64, i64), more: (i64, i64)| {
            *all = (all.0.min(more.0), all.1.max(more.1));
        };
        let (least, greatest) = rows.pass(make, add, merge)?;
        Ok(if least <= greatest {
            Classes::new(least, greatest, most)
        } else {
            Classes(vec![0, 1])
        })
    }

    /// Returns the bounds for the aggregation kernels of the crate `views`. A kernel also counts the values below all
    /// classes and the values above all classes.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::new(self.0.clone())
    }

    /// Splits the counts that a kernel of the crate `views` returns into three parts: the counts of the classes, the
    /// count of values above all classes, and the count of values below all classes.
    pub(crate) fn split_counts(mut counts: Vec<u64>) -> (Vec<u64>, u64, u64) {
        let above = counts.pop().unwrap_or(0);
        let below = if counts.is_empty() {
            0
        } else {
            counts.remove(0)
        };
        (counts, above, below)
    }

    pub(crate) fn into_bounds(self) -> Vec<i64> {
        self.0
    }

    /// Returns an SQL expression for the upper bound of a value's class. It is `NULL` for values above all
    /// classes.
    pub(crate) fn sql(&self, number: &str) -> String {
        let cases: Vec<String> = self
            .0
            .iter()
            .map(|bound| format!("WHEN {number} <= {bound} THEN {bound}"))
            .collect();
        format!("CASE {} END", cases.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn powers_of_ten_are_bounds() {
        let Classes(bounds) = Classes::new(1_000, 10_000_000, 40);
        for power in [1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
            assert!(bounds.contains(&power), "{power} in {bounds:?}");
        }
        assert!(bounds.len() > 20, "{bounds:?}");
    }

    #[test]
    fn every_value_has_a_class_and_the_number_of_classes_is_limited() {
        let mut rng = Rng(11);
        for _ in 0..500 {
            let least = 1i64 << rng.below(62);
            let greatest = least.saturating_add((rng.below(1 << 20) as i64) << rng.below(42));
            let most = 1 + rng.below(256);
            let Classes(bounds) = Classes::new(least, greatest, most);
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
            assert!(bounds.len() <= most + 1 && bounds.len() > 1, "{bounds:?}");
            assert!(bounds[0] < least && *bounds.last().unwrap() >= greatest);
        }
    }

    #[test]
    fn extreme_values_do_not_panic() {
        for (least, greatest) in [
            (i64::MIN, i64::MIN),
            (5, 1),
            (0, 0),
            (1, i64::MAX),
            (i64::MAX, i64::MAX),
        ] {
            let Classes(bounds) = Classes::new(least, greatest, 256);
            assert!(bounds.len() > 1, "{bounds:?}");
        }
    }
}
