//! Requests and answers about SQL queries.

use answer::JsonColumn;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// Request to run SQL statements.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "SqlRequest", optional_fields = nullable)]
pub(super) struct Question {
    /// Ids of the traces to query. `None` for all traces.
    #[serde(default)]
    pub(super) traces: Option<Vec<usize>>,
    /// Statements to run. The answer has the rows of the last statement with a result.
    pub(super) query: String,
    /// Maximum number of rows to return.
    #[serde(default)]
    pub(super) first: Option<usize>,
}

/// Rows that answer a question.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SqlAnswer")]
pub(super) struct Rows {
    pub(super) columns: Vec<JsonColumn>,
    #[ts(type = "unknown[][]")]
    pub(super) rows: Vec<Vec<Value>>,
    /// True if the query has more rows than this answer.
    pub(super) more: bool,
    pub(super) took_ms: u64,
}

/// Tables and views that can be queried.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SqlCatalogue")]
pub(super) struct Catalogue {
    pub(super) tables: Vec<SqlTable>,
    pub(super) functions: Vec<Function>,
}

/// Table or view.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SqlTable")]
pub(super) struct SqlTable {
    pub(super) name: &'static str,
    pub(super) about: String,
    pub(super) view: bool,
    pub(super) columns: Vec<Column>,
}

/// Column of a table or view.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SqlTableColumn")]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) data_type: String,
    pub(super) about: Option<String>,
}

/// Function that queries can call.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SqlFunction")]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) signature: String,
    pub(super) about: &'static str,
}
