//! Evidence of findings and verdicts: rows, and the query that gives the same rows.

use std::ops::Range;

use selection::{Expression, Selection};
use serde::{Serialize, Serializer};
use ts_rs::TS;
use wording::Sentence;

use crate::numbers::is_possible_share;

/// Rows that support a finding or verdict, and the query that gives the same rows.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Evidence {
    /// Title of the rows.
    #[ts(as = "String")]
    pub title: Sentence,
    /// Query for the rows. `laglab sql` answers the SQL of this query with the same rows and the
    /// same column names.
    #[ts(as = "String")]
    query: Query,
    /// Rows that the view of this evidence shows in the page of `laglab open`; `None` if the view shows the rows of
    /// the query. The server sends the view of a finding's evidence separately, so this field is not serialized.
    #[serde(skip_serializing)]
    #[ts(rename = "view", optional = nullable, type = "View | null")]
    about: Option<Selection>,
    /// Columns of the rows.
    pub columns: Vec<Column>,
    /// Rows with one cell per column. A cell is `None` if its value is unknown.
    pub rows: Vec<Vec<Option<Value>>>,
}

/// Query that gives the rows.
#[derive(Clone, Debug, PartialEq)]
enum Query {
    /// Rows of one table.
    Selection(Selection),
    /// SQL query that a selection cannot express.
    Sql(String),
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Query::Selection(selection) => serializer.serialize_str(&selection.sql()),
            Query::Sql(sql) => serializer.serialize_str(sql),
        }
    }
}

/// A column of [`Evidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[ts(rename = "EvidenceColumn")]
pub struct Column {
    /// Name of the column, as in tables and queries.
    pub name: &'static str,
    /// Heading of the column for human readers.
    pub label: &'static str,
    /// Unit of the numbers in the column.
    pub unit: Unit,
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// No unit: a name, an id, a level.
    None,
    /// Number of items.
    Count,
    /// Duration in nanoseconds.
    Duration,
    /// Nanoseconds since the trace's start.
    Moment,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Percent.
    Percent,
}

/// Value of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(untagged)]
#[ts(rename = "EvidenceCell")]
pub enum Value {
    /// An integer.
    Integer(i64),
    /// A number with a fractional part.
    Real(f64),
    /// A Boolean value.
    Flag(bool),
    /// Text.
    Text(String),
}

impl Column {
    /// Creates a column.
    pub const fn new(name: &'static str, label: &'static str, unit: Unit) -> Column {
        Column { name, label, unit }
    }
}

impl Evidence {
    /// Creates evidence without rows. Its query is SQL, for queries that a [`Selection`] cannot express.
    pub fn new(title: impl Into<Sentence>, sql: impl Into<String>, columns: &[Column]) -> Evidence {
        Evidence {
            title: title.into(),
            query: Query::Sql(sql.into()),
            about: None,
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Creates evidence without columns and rows. Its query is a selection.
    pub fn from_selection(title: impl Into<Sentence>, selection: Selection) -> Evidence {
        Evidence {
            title: title.into(),
            query: Query::Selection(selection),
            about: None,
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a column with the values of an expression. The query of the evidence must be a selection.
    #[must_use]
    pub fn column(
        mut self,
        name: &'static str,
        label: &'static str,
        unit: Unit,
        expression: Expression,
    ) -> Evidence {
        if let Query::Selection(selection) = &mut self.query {
            selection.columns.push((name, expression));
        }
        self.columns.push(Column::new(name, label, unit));
        self
    }

    /// Adds a column of the queried table. The query of the evidence must be a selection.
    #[must_use]
    pub fn stored(self, name: &'static str, label: &'static str, unit: Unit) -> Evidence {
        self.column(name, label, unit, Expression::Column(name))
    }

    /// Sets the rows that a view shows. Use this method if a view cannot show the rows of the query.
    #[must_use]
    pub fn about(mut self, selection: Selection) -> Evidence {
        self.about = Some(selection);
        self
    }

    /// Adds a row. A share that is impossible becomes unknown.
    ///
    /// # Panics
    /// Panics if the row does not have one cell for each column.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Option<Value>>) -> Evidence {
        let mut row: Vec<Option<Value>> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "{}", self.title);
        for (cell, column) in row.iter_mut().zip(&self.columns) {
            let is_possible = match cell {
                Some(Value::Real(percent)) => is_possible_share(*percent),
                _ => true,
            };
            if column.unit == Unit::Percent && !is_possible {
                *cell = None;
            }
        }
        self.rows.push(row);
        self
    }

    /// Returns the query as SQL.
    pub fn sql(&self) -> String {
        match &self.query {
            Query::Selection(selection) => selection.sql(),
            Query::Sql(sql) => sql.clone(),
        }
    }

    /// Returns the rows that a view of the evidence shows: the rows set by `about`, or else the rows of the query.
    /// Returns `None` if no rows are set and the query is SQL.
    pub fn selection(&self) -> Option<&Selection> {
        let of_query = match &self.query {
            Query::Selection(selection) => Some(selection),
            Query::Sql(_) => None,
        };
        self.about.as_ref().or(of_query)
    }

    /// Returns the time range, extended to all moments in the rows. For example, the rows of a wait also contain the
    /// end of the next run, which is later than the end of the wait.
    pub fn range_with_rows(&self, range: Range<i64>) -> Range<i64> {
        let moments = self
            .columns
            .iter()
            .map(|column| column.unit == Unit::Moment);
        let moments: Vec<bool> = moments.collect();
        let cells = self.rows.iter().flat_map(|row| row.iter().zip(&moments));
        cells.fold(range, |range, cell| match cell {
            (Some(Value::Integer(ns)), true) => {
                range.start.min(*ns)..range.end.max(ns.saturating_add(1))
            }
            _ => range,
        })
    }
}

macro_rules! whole_numbers {
    ($($number:ty),+) => {
        $(impl From<$number> for Value {
            fn from(number: $number) -> Value {
                Value::Integer(number.into())
            }
        })+
    };
}

whole_numbers!(i64, u32, u16, u8, i8);

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
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
