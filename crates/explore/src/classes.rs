//! Classes of values that rise by equal factors.

use views::{Bounds, Rows};

use crate::ExploreError;
use crate::columns::Measures;
use crate::selection::Selection;

/// The most classes of values.
pub(crate) const MOST_CLASSES: u64 = 256;

/// Bounds of classes of values: class `i` holds values above bound `i` and up to bound `i + 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classes(Vec<i64>);

impl Classes {
    /// At most so many classes that hold all values from the least to the greatest, which are
    /// above 0. Each decade is cut alike, so that powers of ten are bounds; of small numbers a class
    /// is one of them.
    pub(crate) fn new(least: i64, greatest: i64, most: usize) -> Classes {
        let (least, greatest) = (least.max(1), greatest.max(least.max(1)));
        let most = most.max(1);
        let edges = |steps: u32| {
            let edge = |step: i64| {
                let edge = 10f64.powf(step as f64 / f64::from(steps)).round();
                // Beyond its bounds a float becomes the nearest integer.
                edge as i64
            };
            // The last edge below the least value; the first that is not below the greatest.
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

    /// Classes for the selected rows: of the values asked for, or of all.
    pub(crate) fn of(
        selection: &Selection<'_>,
        numbers: &Measures,
        asked: Option<[i64; 2]>,
        most: u32,
    ) -> Result<Classes, ExploreError> {
        let most = most as usize;
        if let Some([least, greatest]) = asked {
            if least > greatest || greatest < 1 {
                return Err(ExploreError::OutOfBounds {
                    field: "values",
                    needed: format!(
                        "must be the least and the greatest value, above 0, not {least} and \
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
        let (least, greatest) = selection.pass(make, add, merge)?;
        Ok(match least <= greatest {
            true => Classes::new(least, greatest, most),
            false => Classes(vec![0, 1]),
        })
    }

    /// For the kernels, whose first class is of what is below all, and the last of what is above.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::new(self.0.clone())
    }

    /// A kernel's counts: those of classes, of what is above, and of what is below.
    pub(crate) fn split(mut counts: Vec<u64>) -> (Vec<u64>, u64, u64) {
        let above = counts.pop().unwrap_or(0);
        let below = if counts.is_empty() {
            0
        } else {
            counts.remove(0)
        };
        (counts, above, below)
    }

    /// The bounds.
    pub(crate) fn into_bounds(self) -> Vec<i64> {
        self.0
    }

    /// The upper bound of a value's class as SQL; of what is above all, nothing.
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
    fn every_value_has_a_class_and_there_are_no_more_than_asked_for() {
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
    fn senseless_values_are_survived() {
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
