//! How much, per slice of time and group.

use serde::{Deserialize, Serialize};

use crate::{Condition, Id, Number};

/// Asks how much there was over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineRequest {
    /// The table.
    pub table: String,
    /// The key that has a series each; without one there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// A column of numbers; `rows` (or nothing) for the number of rows; `time` for the nanoseconds
    /// that rows last, spread over the slices that they cover.
    #[serde(default)]
    pub measure: Option<String>,
    /// What is computed of a column's numbers: their sum if nothing is said.
    #[serde(default)]
    pub function: Option<Function>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Slices of time, 1 to 4000.
    pub buckets: u32,
    /// Series shown one by one, at most 64: those of the greatest totals.
    pub first: u32,
}

/// What is computed of the numbers of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Their sum.
    #[default]
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Their mean.
    Mean,
    /// How many are known.
    Count,
}

/// How much there was over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineAnswer {
    /// Where the first slice begins.
    pub start_ns: i64,
    /// Where the last ends; it may be shorter than the others.
    pub end_ns: i64,
    /// How long a slice is.
    pub bucket_ns: i64,
    /// How many there are.
    pub buckets: usize,
    /// The series of the greatest totals first; that of the unknown, if there is one, last.
    pub series: Vec<TimelineSeries>,
    /// All others together.
    pub rest: Option<RestSeries>,
    /// The unit of the values.
    pub unit: String,
    /// The query that gives the same.
    pub sql: String,
}

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineSeries {
    /// Its group.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// The function of the whole range.
    pub total: Option<Number>,
    /// By slice: 0 where nothing is summed or counted, `null` where nothing is known otherwise.
    pub values: Vec<Option<Number>>,
}

/// The groups without a line of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestSeries {
    /// How many there are.
    pub count: usize,
    /// The function over all of them, of the whole range.
    pub total: Option<Number>,
    /// The same by slice.
    pub values: Vec<Option<Number>>,
}
