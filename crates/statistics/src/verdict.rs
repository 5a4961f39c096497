//! Verdicts in words.

use std::fmt;

use serde::Serialize;

use crate::{Interval, Scale};

/// Change that matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Margin {
    /// Share of the value before the change, such as 0.02.
    Share(f64),
    /// Difference in the unit of the values.
    Difference(f64),
}

/// Change that matters if the user gives no other, as a share of the value before the change.
pub const MARGIN: f64 = 0.02;

impl Default for Margin {
    fn default() -> Margin {
        Margin::Share(MARGIN)
    }
}

/// Conclusion from an interval and a margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Higher by more than the margin.
    Higher,
    /// Lower by more than the margin.
    Lower,
    /// Higher; how much is open, or less than the margin.
    SlightlyHigher,
    /// Lower; how much is open, or less than the margin.
    SlightlyLower,
    /// Any change is smaller than the margin.
    Same,
    /// The interval allows no change as well as one that matters.
    Unknown,
}

impl Verdict {
    /// Returns true if more runs would not change the conclusion: higher or lower by more than the margin, or
    /// the same.
    pub fn is_sure(self) -> bool {
        matches!(self, Verdict::Higher | Verdict::Lower | Verdict::Same)
    }

    /// Judges the change from before to after. A margin of another kind than the scale counts as 0.
    pub fn of(change: Interval, scale: Scale, margin: Margin) -> Verdict {
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
        } else if low > below && high < above {
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
