//! Verdicts about changes, in words.

use std::fmt;

use serde::Serialize;

use crate::{Interval, Scale};

/// Minimum change that matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Margin {
    /// Minimum change as a share of the value before the change, such as 0.02.
    Share(f64),
    /// Minimum change as a difference, in the unit of the values.
    Difference(f64),
}

/// Default of the minimum change that matters, as a share of the value before the change.
pub const MARGIN: f64 = 0.02;

impl Default for Margin {
    fn default() -> Margin {
        Margin::Share(MARGIN)
    }
}

/// Conclusion from the confidence interval of a change and the margin (the minimum change that matters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value is higher by more than the margin.
    Higher,
    /// The value is lower by more than the margin.
    Lower,
    /// The value is higher, but perhaps by less than the margin.
    SlightlyHigher,
    /// The value is lower, but perhaps by less than the margin.
    SlightlyLower,
    /// The change is smaller than the margin.
    Same,
    /// The interval contains both "no change" and a change that matters.
    Unknown,
}

impl Verdict {
    /// Returns true if the conclusion is certain, so more runs are not needed. It is certain if the value is
    /// higher or lower by more than the margin, or if the change is smaller than the margin.
    pub fn is_sure(self) -> bool {
        matches!(self, Verdict::Higher | Verdict::Lower | Verdict::Same)
    }

    /// Returns the conclusion about a change from before to after. If the margin and the scale are of
    /// different kinds, the margin counts as 0.
    pub fn from_interval(change: Interval, scale: Scale, margin: Margin) -> Verdict {
        let (none, above, below) = match (scale, margin) {
            (Scale::Ratio, Margin::Share(share)) => (1.0, 1.0 + share, 1.0 / (1.0 + share)),
            (Scale::Ratio, Margin::Difference(_)) => (1.0, 1.0, 1.0),
            (Scale::Difference, Margin::Difference(size)) => (0.0, size, -size),
            (Scale::Difference, Margin::Share(_)) => (0.0, 0.0, 0.0),
        };
        let Interval { low, high, .. } = change;
        if low > above {
            Verdict::Higher
        } else if high < below {
            Verdict::Lower
        } else if low > below && high < above || low == none && high == none {
            Verdict::Same
        } else if low > none {
            Verdict::SlightlyHigher
        } else if high < none {
            Verdict::SlightlyLower
        } else {
            Verdict::Unknown
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Higher => "higher",
            Verdict::Lower => "lower",
            Verdict::SlightlyHigher => "higher, perhaps by less than matters",
            Verdict::SlightlyLower => "lower, perhaps by less than matters",
            Verdict::Same => "the same",
            Verdict::Unknown => "unknown",
        })
    }
}
