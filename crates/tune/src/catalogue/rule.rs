//! What an audit says of a value.

use serde::Deserialize;

use super::{Datum, When};
use crate::found::Place;
use crate::machine::Machine;

/// A sentence about some values of a setting, on some machines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// On which machines.
    #[serde(default)]
    pub when: When,
    /// It is about these values; none is any value that is set.
    #[serde(default)]
    pub is: Vec<Datum>,
    /// It is about all values but these.
    #[serde(default)]
    pub is_not: Vec<Datum>,
    /// It is about numbers below this one.
    pub below: Option<u64>,
    /// It is about numbers above this one.
    pub above: Option<u64>,
    /// What that makes of it.
    pub verdict: Verdict,
    /// The sentence.
    pub says: String,
}

/// What a rule makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has no effect here.
    NoEffect,
    /// It is wrong: something does not work, or not as whoever set it believes.
    Fault,
    /// It costs something, or is worth a look.
    Doubtful,
    /// It is to be known when numbers are read.
    Context,
}

impl Rule {
    /// Whether it is about this value on this machine; `None` where too little is known to tell.
    pub fn applies(&self, value: &Datum, place: Option<&Place>, machine: &Machine) -> Option<bool> {
        let number = value.number();
        let is_meant = (self.is.is_empty() || self.is.contains(value))
            && !self.is_not.contains(value)
            && (self.below).is_none_or(|limit| number.is_some_and(|number| number < limit))
            && (self.above).is_none_or(|limit| number.is_some_and(|number| number > limit));
        match is_meant {
            true => self.when.holds(machine, place),
            false => Some(false),
        }
    }
}
