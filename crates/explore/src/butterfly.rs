//! Functions by the weight of the stacks that they are in, and who called one and what it called.

use serde::{Deserialize, Serialize};

use crate::{Condition, Nodes};

/// Asks for functions, or for the callers and callees of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ButterflyRequest {
    /// The table.
    pub table: String,
    /// One of its columns of stacks.
    pub stack: String,
    /// A column of numbers that are not negative, or `rows`.
    pub weight: String,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// The function whose callers and callees are asked for; all functions if none.
    #[serde(default)]
    pub frame: Option<String>,
    /// How functions are sorted.
    #[serde(default)]
    pub order: ButterflyOrder,
    /// Functions given at most, up to 10 000; 1000 if nothing is said.
    #[serde(default)]
    pub first: Option<u32>,
    /// Calls that have less of the whole weight are left out: 0.0005 if nothing is said.
    #[serde(default)]
    pub least_share: Option<f64>,
}

/// How functions are sorted, greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ButterflyOrder {
    /// By the weight in them and all that they call.
    #[default]
    Total,
    /// By the weight that ends in them.
    #[serde(rename = "self")]
    Own,
}

/// Functions, or the callers and callees of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ButterflyAnswer {
    /// The weight of all rows.
    pub total: i64,
    /// What share of it has a stack.
    pub known: f64,
    /// How many functions there are.
    pub functions_total: usize,
    /// The functions, unless one was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<FunctionWeight>>,
    /// Names of the frames of the trees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// Who called the function, from it outwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<Nodes>,
    /// What it called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callees: Option<Nodes>,
    /// The unit of weights.
    pub unit: String,
}

/// A function's weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionWeight {
    /// Its name.
    pub label: String,
    /// Weight that ends in it.
    #[serde(rename = "self")]
    pub own: i64,
    /// Weight of the stacks that it is in, each counted once.
    pub total: i64,
}
