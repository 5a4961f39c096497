//! Values of settings, independent of their storage.

use std::fmt;

use serde::Deserialize;

/// A number or a text. Values of all stores are converted to this type.
#[derive(Clone, Debug, Eq, Deserialize)]
#[serde(untagged)]
pub enum Datum {
    /// A number. A decimal text is also stored as a number. Yes is 1 and no is 0.
    Number(u64),
    /// A text. Comparisons ignore its case.
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
    /// Returns the number, or `None` for text.
    pub fn number(&self) -> Option<u64> {
        match self {
            Datum::Number(number) => Some(*number),
            Datum::Text(_) => None,
        }
    }
}

impl fmt::Display for Datum {
    /// Formats a number of 10 or more in decimal and hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Number(number) if *number < 10 => write!(f, "{number}"),
            Datum::Number(number) => write!(f, "{number} ({number:#x})"),
            Datum::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
        }
    }
}
