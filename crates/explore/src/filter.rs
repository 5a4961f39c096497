//! Which rows count.

use serde::{Deserialize, Serialize};

use crate::Id;

/// A condition on one column; where it says several things, all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// A key's id is one of these; `null` is the unknown.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<Id>>,
    /// A key's id is none of these. The unknown passes unless it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Vec<Id>>,
    /// A key's label is one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Vec<String>>,
    /// A key's label is none of these. The unknown passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_not: Option<Vec<String>>,
    /// A key's label, or a text, contains this, whatever the case. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A number is at least this. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// A number is less than this. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
}
