//! Ids, numbers and other values in answers.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Id of a group; `None` for the group of unknown values.
pub type Id = Option<i64>;

/// A number in an answer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// An integer. Only means are not integers.
    Integer(i64),
    /// A floating-point number, which is used for means.
    Real(f64),
}

impl From<views::Number> for Number {
    fn from(number: views::Number) -> Number {
        match number {
            views::Number::Integer(integer) => Number::Integer(integer),
            views::Number::Real(real) => Number::Real(real),
        }
    }
}

/// A value in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(untagged)]
#[ts(rename = "Cell")]
pub enum Value {
    /// Unknown value, which is `null` in JSON.
    Unknown,
    /// True or false.
    Flag(bool),
    /// A number.
    Number(#[ts(as = "f64")] Number),
    /// A text, usually the label of a key.
    Text(String),
    /// The rows of the group do not have a common value.
    Different {
        /// Number of different values. All unknown values count as one value.
        different: u64,
    },
}

impl From<Option<Number>> for Value {
    fn from(number: Option<Number>) -> Value {
        number.map_or(Value::Unknown, Value::Number)
    }
}

impl Value {
    /// Compares two values of a column. `Value::Different` comes after all other values. Two `Value::Different` are
    /// ordered by their numbers of values.
    pub(crate) fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Value::Text(a), Value::Text(b)) => (a.to_lowercase(), a).cmp(&(b.to_lowercase(), b)),
            (Value::Flag(a), Value::Flag(b)) => a.cmp(b),
            (Value::Different { different: a }, Value::Different { different: b }) => a.cmp(b),
            (Value::Different { .. }, _) => Ordering::Greater,
            (_, Value::Different { .. }) => Ordering::Less,
            _ => Ordering::Equal,
        }
    }
}
