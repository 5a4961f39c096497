//! Count, sum, minimum and maximum of values.

use std::hint::cold_path;

use crate::NULL;

/// Count, sum, minimum and maximum of the known values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    count: u64,
    /// Exact sum. The type is wide enough for any number of values, so the order of adding and
    /// merging does not matter.
    sum: i128,
    min: i64,
    max: i64,
}

impl Summary {
    /// Summary of no values.
    pub const EMPTY: Summary = Summary {
        count: 0,
        sum: 0,
        min: i64::MAX,
        max: i64::MIN,
    };

    /// Returns the number of known values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum, limited to the range of `i64`. Returns `None` if there are no values.
    pub fn sum(&self) -> Option<i64> {
        let limits = (i64::MIN.into(), i64::MAX.into());
        self.known(self.sum.clamp(limits.0, limits.1) as i64)
    }

    /// Returns the mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        self.known(self.sum as f64 / self.count as f64)
    }

    /// Returns the minimum; `None` if there are no values.
    pub fn min(&self) -> Option<i64> {
        self.known(self.min)
    }

    /// Returns the maximum; `None` if there are no values.
    pub fn max(&self) -> Option<i64> {
        self.known(self.max)
    }

    fn known<T>(&self, value: T) -> Option<T> {
        (self.count > 0).then_some(value)
    }

    /// Adds a value if it is known. Returns true if the value is known.
    #[inline]
    pub(crate) fn add(&mut self, value: i64) -> bool {
        if value != NULL {
            self.add_times(value, 1);
        }
        value != NULL
    }

    /// Adds a known value several times. `times` must be at least 1.
    #[inline]
    pub(crate) fn add_times(&mut self, value: i64, times: u64) {
        self.count += times;
        self.sum += i128::from(value) * i128::from(times);
        // A new minimum or maximum is rare. So the fields are written only if they change, which saves a
        // quarter of the time.
        if value < self.min {
            cold_path();
            self.min = value;
        }
        if value > self.max {
            cold_path();
            self.max = value;
        }
    }

    /// Adds all values of another summary.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Default for Summary {
    fn default() -> Summary {
        Summary::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_values(values: &[i64]) -> Summary {
        let mut summary = Summary::EMPTY;
        for value in values {
            summary.add(*value);
        }
        summary
    }

    #[test]
    fn nothing_known_is_unknown() {
        let empty = from_values(&[NULL, NULL]);
        assert_eq!(empty.count(), 0);
        assert_eq!((empty.sum(), empty.min(), empty.max()), (None, None, None));
        assert_eq!(empty.mean(), None);
    }

    #[test]
    fn sums_saturate_only_when_read() {
        let summary = from_values(&[i64::MAX, i64::MAX]);
        assert_eq!(summary.sum(), Some(i64::MAX));
        assert_eq!(summary.mean(), Some(i64::MAX as f64));
        let mut back = from_values(&[-i64::MAX, -i64::MAX]);
        assert_eq!(back.sum(), Some(i64::MIN));
        back.merge(&summary);
        assert_eq!(back.sum(), Some(0));
        assert_eq!((back.min(), back.max()), (Some(-i64::MAX), Some(i64::MAX)));
    }
}
