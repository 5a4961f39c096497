//! How values are spread over time.

use serde::{Deserialize, Serialize};

use crate::Condition;

/// Asks how values are spread over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatRequest {
    /// The table.
    pub table: String,
    /// A column of numbers.
    pub value: String,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Slices of time, 1 to 4000.
    pub buckets: u32,
    /// Classes of values at most, 1 to 256.
    pub rows: u32,
    /// The least and the greatest value that have a class; those of the rows if nothing is said.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// How values are spread over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatAnswer {
    /// Where the first slice begins.
    pub start_ns: i64,
    /// Where the last ends.
    pub end_ns: i64,
    /// How long a slice is.
    pub bucket_ns: i64,
    /// How many there are.
    pub buckets: usize,
    /// The bounds of classes, rising by equal factors: class `i` holds values above `bounds[i]` and
    /// up to `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// By slice, then by class.
    pub counts: Vec<Vec<u64>>,
    /// Values above all classes.
    pub above: u64,
    /// Values below all classes: zeros as a rule.
    pub below: u64,
    /// The unit of the values.
    pub unit: String,
    /// The query that gives the same.
    pub sql: String,
}
