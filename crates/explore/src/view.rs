//! Views: a table that a user sees, and the way in which it is shown.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Condition;

/// A table with its columns, graph and filter. It is a small document that can be stored, sent and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct View {
    /// Name of the table.
    pub table: String,
    /// Columns in their order. [`View::BAR`] represents the golden bar. Keys left of the bar group the rows. Aggregates
    /// right of the bar (such as `cpu_ns:sum` or `rows`) are computed for each group.
    pub columns: Vec<String>,
    /// Graph above the table.
    #[serde(default)]
    pub graph: Graph,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Order of the groups.
    #[serde(default)]
    pub sort: Option<Sort>,
}

impl View {
    /// Text that represents the golden bar in the list of columns.
    pub const BAR: &'static str = "|";
}

/// Order of rows or groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    /// Name of the column, or the aggregate.
    pub column: String,
    /// True if the largest value is first.
    pub descending: bool,
}

/// Graph of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct Graph {
    /// Kind of graph.
    pub kind: GraphKind,
    /// Name of the column whose values are drawn. `rows` draws the number of rows, and `time` the share of
    /// time that rows last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// Function that combines the values of the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<crate::Function>,
    /// Key with one series or colour for each of its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Arrangement of the series of a timeline.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
    /// Name of the column of stacks that is drawn. It must be one of the table's `stacks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// Kind of graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum GraphKind {
    /// Series of values over time.
    Timeline,
    /// Heat map, which shows the number of rows by time and value.
    Heat,
    /// Lanes of CPUs, which show the threads that ran on each CPU.
    Lanes,
    /// Flame graph of stacks.
    Flame,
    /// Histogram, which shows the number of rows by value.
    Histogram,
    /// No graph.
    #[default]
    None,
}

/// Arrangement of the series of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Drawn {
    /// Series are drawn on top of each other.
    Stacked,
    /// Each series is a line that starts at zero.
    Lines,
    /// Each series is a row, filled by the share of time. Rows of threads show their states.
    Lanes,
}
