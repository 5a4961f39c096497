//! What is kept of many values: how many, their sum, the least and the greatest.

use std::hint::cold_path;

use crate::NULL;

/// How many known values there were, their sum, the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    count: u64,
    /// Wide enough to be exact for any number of values, so that order and merging do not matter.
    sum: i128,
    min: i64,
    max: i64,
}

impl Summary {
    /// Of no value.
    pub const EMPTY: Summary = Summary {
        count: 0,
        sum: 0,
        min: i64::MAX,
        max: i64::MIN,
    };

    /// Known values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, saturated; none of no value.
    pub fn sum(&self) -> Option<i64> {
        let limits = (i64::MIN.into(), i64::MAX.into());
        self.known(self.sum.clamp(limits.0, limits.1) as i64)
    }

    /// Their mean; none of no value.
    pub fn mean(&self) -> Option<f64> {
        self.known(self.sum as f64 / self.count as f64)
    }

    /// The least; none of no value.
    pub fn min(&self) -> Option<i64> {
        self.known(self.min)
    }

    /// The greatest; none of no value.
    pub fn max(&self) -> Option<i64> {
        self.known(self.max)
    }

    fn known<T>(&self, value: T) -> Option<T> {
        (self.count > 0).then_some(value)
    }

    /// Takes a value, if it is known, and says whether it is.
    #[inline]
    pub(crate) fn add(&mut self, value: i64) -> bool {
        if value != NULL {
            self.add_times(value, 1);
        }
        value != NULL
    }

    /// Takes a known value so many times, at least once.
    #[inline]
    pub(crate) fn add_times(&mut self, value: i64, times: u64) {
        self.count += times;
        self.sum += i128::from(value) * i128::from(times);
        // New extremes are rare: not writing the old ones again saves a quarter of the time.
        if value < self.min {
            cold_path();
            self.min = value;
        }
        if value > self.max {
            cold_path();
            self.max = value;
        }
    }

    /// Takes all values of another.
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

    fn of(values: &[i64]) -> Summary {
        let mut summary = Summary::EMPTY;
        for value in values {
            summary.add(*value);
        }
        summary
    }

    #[test]
    fn nothing_known_is_unknown() {
        let empty = of(&[NULL, NULL]);
        assert_eq!(empty.count(), 0);
        assert_eq!((empty.sum(), empty.min(), empty.max()), (None, None, None));
        assert_eq!(empty.mean(), None);
    }

    #[test]
    fn sums_saturate_only_when_asked_for() {
        let summary = of(&[i64::MAX, i64::MAX]);
        assert_eq!(summary.sum(), Some(i64::MAX));
        assert_eq!(summary.mean(), Some(i64::MAX as f64));
        let mut back = of(&[-i64::MAX, -i64::MAX]);
        assert_eq!(back.sum(), Some(i64::MIN));
        back.merge(&summary);
        assert_eq!(back.sum(), Some(0));
        assert_eq!((back.min(), back.max()), (Some(-i64::MAX), Some(i64::MAX)));
    }
}
