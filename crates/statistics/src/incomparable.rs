//! Reasons why a statistic has no result.

/// Reason why a statistic has no result.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Incomparable {
    /// There are too few pairs of runs.
    #[error("too few pairs of runs ({found}; 95 % confidence needs {needed})")]
    TooFewPairs {
        /// Number of pairs.
        found: usize,
        /// Minimum number of pairs.
        needed: usize,
    },
    /// The runs are unpaired, and there are too few of them.
    #[error("too few runs ({before} before, {after} after; 95 % confidence needs 4 on each side)")]
    TooFewRuns {
        /// Number of runs before the change.
        before: usize,
        /// Number of runs after the change.
        after: usize,
    },
    /// There are too many pairs of runs.
    #[error("too many pairs of runs ({found}; the maximum is {most})")]
    TooMany {
        /// Number of pairs.
        found: usize,
        /// Maximum number of pairs.
        most: usize,
    },
    /// The numbers of runs before and after the change differ, so the runs cannot be paired.
    #[error("the runs cannot form pairs: {before} before and {after} after")]
    Unequal {
        /// Number of runs before the change.
        before: usize,
        /// Number of runs after the change.
        after: usize,
    },
    /// A value is infinite or not a number.
    #[error("a value is infinite or not a number")]
    NotFinite,
    /// A value is 0 or negative, so there is no ratio.
    #[error("a median is zero or negative, so there is no ratio")]
    NotPositive,
    /// The variance of the values before the change is so large that their mean may be 0. So the ratio of
    /// means has no bounds.
    #[error("the mean before the change may be 0, so there is no ratio")]
    NoRatio,
    /// A run has too few samples for a quantile.
    #[error("too few samples in a run ({found}; this quantile needs {needed})")]
    TooShort {
        /// Number of samples in the shortest run.
        found: usize,
        /// Minimum number of samples in a run.
        needed: usize,
    },
}
