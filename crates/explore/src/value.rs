//! Ids, numbers and cells of answers.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The id of a group; `None` is the unknown.
pub type Id = Option<i64>;

/// A number of an answer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// All but means.
    Integer(i64),
    /// A mean.
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

/// A cell of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Not known: `null`.
    Unknown,
    /// A flag.
    Flag(bool),
    /// A number.
    Number(Number),
    /// Text, a label as a rule.
    Text(String),
    /// The rows of the group do not agree: how many different values they have.
    Different {
        /// How many, the unknown among them.
        different: u64,
    },
}

impl From<Option<Number>> for Value {
    fn from(number: Option<Number>) -> Value {
        number.map_or(Value::Unknown, Value::Number)
    }
}

impl Value {
    /// Which of two values of a column comes first; those that rows do not agree on come after
    /// others, by how many they are.
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
