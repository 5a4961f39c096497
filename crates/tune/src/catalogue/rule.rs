//! Rules of the catalogue for the remarks of an audit.

use serde::Deserialize;

use super::{Condition, Datum};
use crate::machine::Machine;
use crate::placed_value::Place;

/// A remark that an audit makes about some values of a setting on some machines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Machines to which the rule applies.
    #[serde(default)]
    pub when: Condition,
    /// Values to which the rule applies; empty for all values.
    #[serde(default)]
    pub is: Vec<Datum>,
    /// Values to which the rule does not apply.
    #[serde(default)]
    pub is_not: Vec<Datum>,
    /// Exclusive upper bound. The rule applies only to numbers below it.
    pub below: Option<u64>,
    /// Exclusive lower bound. The rule applies only to numbers above it.
    pub above: Option<u64>,
    /// Verdict of the rule on the value.
    pub verdict: Verdict,
    /// Remark as a sentence for the user.
    pub says: String,
}

/// Verdict of a rule on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The value has no effect on this machine.
    NoEffect,
    /// The value is wrong, so something does not work as intended.
    Fault,
    /// The value costs something or should be checked.
    Doubtful,
    /// The value is neither good nor bad, but the user must know it to interpret measurements.
    Context,
}

impl Rule {
    /// Returns true if the rule applies to a value on a machine. Returns `None` if too little is known about
    /// the machine.
    pub fn applies(&self, value: &Datum, place: Option<&Place>, machine: &Machine) -> Option<bool> {
        let number = value.number();
        let is_covered = (self.is.is_empty() || self.is.contains(value))
            && !self.is_not.contains(value)
            && (self.below).is_none_or(|limit| number.is_some_and(|number| number < limit))
            && (self.above).is_none_or(|limit| number.is_some_and(|number| number > limit));
        if is_covered {
            self.when.holds(machine, place)
        } else {
            Some(false)
        }
    }
}
