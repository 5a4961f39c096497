//! How values are spread, by group.

use serde::{Deserialize, Serialize};

use crate::{Condition, Id};

/// Asks how values are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramRequest {
    /// The table.
    pub table: String,
    /// A column of numbers.
    pub value: String,
    /// The key that has a series each; without one there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Classes of values at most, 1 to 256; 60 if nothing is said.
    #[serde(default)]
    pub classes: Option<u32>,
    /// Series shown at most, up to 64: those of most values; 8 if nothing is said.
    #[serde(default)]
    pub first: Option<u32>,
    /// The least and the greatest value that have a class; those of the rows if nothing is said.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// How values are spread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramAnswer {
    /// The bounds of classes, rising by equal factors: class `i` holds values above `bounds[i]` and
    /// up to `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// The series of most values first.
    pub series: Vec<HistogramSeries>,
    /// How many groups have no series.
    pub rest: usize,
    /// The unit of the values.
    pub unit: String,
    /// The query that gives the same.
    pub sql: String,
}

/// The values of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramSeries {
    /// The group.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// By class.
    pub counts: Vec<u64>,
    /// Values above all classes.
    pub above: u64,
    /// Values below all classes: zeros as a rule.
    pub below: u64,
}
