//! What a verdict rests on: rows, and the question that gives them.

use serde::Serialize;

/// Rows that a verdict rests on, and the SQL that gives the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What the rows are.
    pub title: String,
    /// What `laglab sql` answers with these rows, column by column under these names.
    pub query: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; where something is unknown there is no value.
    pub rows: Vec<Vec<Option<Value>>>,
}

/// A column of [`Evidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name, as in tables and queries.
    pub name: &'static str,
    /// What it is to people.
    pub label: &'static str,
    /// The unit of its numbers.
    pub unit: Unit,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nothing: it is a name, an id, a level.
    None,
    /// Things.
    Count,
    /// Nanoseconds that something lasted.
    Duration,
    /// Nanoseconds since the trace's start.
    Moment,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Hundredths of a whole.
    Percent,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(String),
}

impl Column {
    /// A column.
    pub const fn new(name: &'static str, label: &'static str, unit: Unit) -> Column {
        Column { name, label, unit }
    }
}

impl Evidence {
    /// Rows to be pushed.
    pub fn new(title: impl Into<String>, query: impl Into<String>, columns: &[Column]) -> Evidence {
        Evidence {
            title: title.into(),
            query: query.into(),
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// The same with one more row.
    ///
    /// # Panics
    /// If it has not one cell for each column.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Option<Value>>) -> Evidence {
        let row: Vec<Option<Value>> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "{}", self.title);
        self.rows.push(row);
        self
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Integer(number.into())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Value {
        Value::Integer(number.into())
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Value {
        Value::Integer(number.into())
    }
}

impl From<i8> for Value {
    fn from(number: i8) -> Value {
        Value::Integer(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Real(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Flag(flag)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}
