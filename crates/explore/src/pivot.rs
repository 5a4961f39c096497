//! The groups of one level, summed up and sorted.

use serde::{Deserialize, Serialize};

use crate::{Condition, Id, Value};

/// Asks for the groups of one level of a table's tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PivotRequest {
    /// The table.
    pub table: String,
    /// The keys left of the golden bar, outermost first. Without any there are only totals.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The groups opened, outermost first: the groups of the next key are asked for.
    #[serde(default)]
    pub path: Vec<Id>,
    /// What is computed of each group: `rows`, `COLUMN:sum`, `count`, `mean`, `min`, `max`, `p50`,
    /// `p90`, `p95`, `p99`, `p999`; a key's name for the value that all rows of the group have.
    #[serde(default)]
    pub aggregates: Vec<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// How groups are sorted: by their rows, most first, if nothing is said.
    #[serde(default)]
    pub sort: Option<GroupSort>,
    /// Groups left out first.
    #[serde(default)]
    pub offset: u64,
    /// Groups given then, at most 1000.
    pub first: u32,
    /// Groups whose label contains this, whatever the case.
    #[serde(default)]
    pub search: Option<String>,
}

/// How groups are sorted; equals by id, groups without a value last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSort {
    /// `key` for the groups themselves, or one of the aggregates or `rows`.
    pub by: String,
    /// Greatest first.
    pub descending: bool,
}

/// The groups of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PivotAnswer {
    /// Rows of all groups together, those not searched for too.
    pub rows: u64,
    /// How many groups there are (of those searched for).
    pub groups_total: usize,
    /// The aggregates over all of these rows.
    pub totals: Vec<Value>,
    /// The groups asked for.
    pub groups: Vec<PivotGroup>,
    /// Whether percentiles are exact: of groups beyond some thousand rows they are within 1 %.
    pub exact: bool,
    /// The query that gives the same.
    pub sql: String,
}

/// The rows of one id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PivotGroup {
    /// The id.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// Its rows.
    pub rows: u64,
    /// The aggregates, in the order asked for.
    pub values: Vec<Value>,
    /// Whether it is of the last key.
    pub leaf: bool,
}
