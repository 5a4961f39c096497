//! Reasons why there is no result.

/// Reason why a statistic has no value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Incomparable {
    /// There are too few pairs of runs.
    #[error("too few pairs of runs: {found}; 95 % confidence needs {needed}")]
    TooFewPairs {
        /// Number of pairs.
        found: usize,
        /// Least number of pairs.
        needed: usize,
    },
    /// There are too few runs without pairs.
    #[error("too few runs: {before} before and {after} after; 95 % confidence needs 4 and 4")]
    TooFewRuns {
        /// Number of runs before the change.
        before: usize,
        /// Number of runs after the change.
        after: usize,
    },
    /// There are too many pairs of runs.
    #[error("too many pairs of runs: {found}; the maximum is {most}")]
    TooMany {
        /// Number of pairs.
        found: usize,
        /// Greatest number of pairs.
        most: usize,
    },
    /// The numbers of runs differ, so they make no pairs.
    #[error("{before} runs before and {after} after make no pairs")]
    Unequal {
        /// Number of runs before the change.
        before: usize,
        /// Number of runs after the change.
        after: usize,
    },
    /// A value is not a number, or infinite.
    #[error("a value is infinite or not a number")]
    NotFinite,
    /// A value is zero or negative.
    #[error("a median is zero or negative, so there is no ratio")]
    NotPositive,
    /// The values scatter so much that a ratio of means has no bounds.
    #[error("the mean before the change may be 0, so there is no ratio")]
    NoRatio,
    /// The runs are too short for a quantile.
    #[error("too few samples in a run: {found}; comparing this quantile needs {needed}")]
    TooShort {
        /// Number of samples in the shortest run.
        found: usize,
        /// Least number of samples.
        needed: usize,
    },
}
