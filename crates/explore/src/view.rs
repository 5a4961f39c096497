//! The document that says what is looked at, and how.

use serde::{Deserialize, Serialize};

use crate::Condition;

/// What is looked at, and how: a small document that can be kept, sent and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// The table.
    pub table: String,
    /// Columns in their order. [`View::BAR`] is the golden bar: keys left of it group, aggregates
    /// right of it (`cpu_ns:sum`, `rows`) are of each group.
    pub columns: Vec<String>,
    /// What is drawn.
    #[serde(default)]
    pub graph: Graph,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// How groups are sorted.
    #[serde(default)]
    pub sort: Option<Sort>,
}

impl View {
    /// The golden bar among the columns.
    pub const BAR: &'static str = "|";
}

/// How rows or groups are sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    /// The column or aggregate.
    pub column: String,
    /// Greatest first.
    pub descending: bool,
}

/// What is drawn of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// How.
    pub kind: GraphKind,
    /// The column whose values are drawn, `rows` for their number, or `time` for the share of time
    /// that they last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// What is computed of the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<crate::Function>,
    /// The key that has a series or colour each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How series lie.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
    /// Whose stacks are drawn: a column of the table's `stacks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// A kind of graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphKind {
    /// Series over time.
    Timeline,
    /// Counts over time and value.
    Heat,
    /// Who ran on each CPU.
    Lanes,
    /// Stacks.
    Flame,
    /// Counts over value.
    Histogram,
    /// None.
    #[default]
    None,
}

/// How the series of a timeline lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drawn {
    /// One on top of the other.
    Stacked,
    /// Each from zero.
    Lines,
}
