//! The tables that can be looked at, and what of them can be grouped by and summed up.

use serde::Serialize;

/// A table that can be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableInfo {
    /// Its name, as in SQL.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What a row is.
    pub about: String,
    /// How many rows it has; `null` while it is not made yet.
    pub rows: Option<u64>,
    /// Whether the trace holds any; `null` while it is not made yet.
    pub recorded: Option<bool>,
    /// What to record if it holds nothing.
    pub record: &'static str,
    /// The column with the time that rows are sorted by.
    pub time: &'static str,
    /// From when to when a row lasts, if rows do.
    pub interval: Option<IntervalInfo>,
    /// Its columns.
    pub columns: Vec<ColumnInfo>,
    /// Its columns of stacks.
    pub stacks: Vec<&'static str>,
}

/// The columns that say from when to when a row lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IntervalInfo {
    /// Its first nanosecond.
    pub start: &'static str,
    /// The nanosecond after its last.
    pub end: &'static str,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its name for people: Windows Performance Analyzer's where it has one.
    pub title: String,
    /// What it says.
    pub about: String,
    /// What can be done with it.
    pub kind: ColumnKind,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// A key whose ids are numbers with a meaning, by which it can be summed up and bounded too.
    pub numeric_key: bool,
}

/// What can be done with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Rows are grouped by it.
    Key,
    /// It is summed up.
    Measure,
    /// When something happened.
    Time,
    /// Text of its own in nearly every row: shown with rows, and searched.
    Text,
}
