//! A setting's value as the catalogue writes it.

use std::fmt;

use serde::Deserialize;

/// A number or a text: what values of all stores come down to.
#[derive(Clone, Debug, Eq, Deserialize)]
#[serde(untagged)]
pub enum Datum {
    /// A number, also where it is kept as decimal text; yes is 1 and no is 0.
    Number(u64),
    /// A text. Case does not count.
    Text(String),
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Number(one), Datum::Number(other)) => one == other,
            (Datum::Text(one), Datum::Text(other)) => one.to_lowercase() == other.to_lowercase(),
            _ => false,
        }
    }
}

impl Datum {
    /// The number, if it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Datum::Number(number) => Some(*number),
            Datum::Text(_) => None,
        }
    }
}

impl fmt::Display for Datum {
    /// A number that people know in one base is written in that one: small ones in decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Number(number) if *number < 10 => write!(f, "{number}"),
            Datum::Number(number) => write!(f, "{number} ({number:#x})"),
            Datum::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
        }
    }
}
