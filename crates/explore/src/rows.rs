//! The rows themselves.

use serde::{Deserialize, Serialize};

use crate::{ColumnKind, Condition, Sort, Value};

/// Asks for rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsRequest {
    /// The table.
    pub table: String,
    /// Columns to show.
    pub columns: Vec<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// How they are sorted: as the table is, if nothing is said.
    #[serde(default)]
    pub sort: Option<Sort>,
    /// Rows left out first.
    #[serde(default)]
    pub offset: u64,
    /// Rows given then, at most 1000.
    pub first: u32,
}

/// Some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowsAnswer {
    /// How many rows there are.
    pub rows: u64,
    /// The columns asked for.
    pub columns: Vec<RowColumn>,
    /// By row, then by column; ids are given as their labels.
    pub values: Vec<Vec<Value>>,
    /// The query that gives the same.
    pub sql: String,
}

/// A column of shown rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowColumn {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is.
    pub kind: ColumnKind,
    /// The unit of its numbers.
    pub unit: &'static str,
}
