//! Where the weight of stacks lies.

use serde::{Deserialize, Serialize};

use crate::Condition;

/// Asks for a tree of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlameRequest {
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
    /// From the innermost call outwards: who called what took the time.
    #[serde(default)]
    pub inverted: bool,
    /// Only stacks that begin with these frames (end, if inverted), outermost first.
    #[serde(default)]
    pub root: Option<Vec<String>>,
    /// Another stretch of time to compare with.
    #[serde(default)]
    pub compare: Option<[i64; 2]>,
    /// Calls that have less of the whole weight are left out: 0.0005 if nothing is said.
    #[serde(default)]
    pub least_share: Option<f64>,
}

/// A tree of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlameAnswer {
    /// The weight of all rows.
    pub total: i64,
    /// The same in the stretch compared with.
    pub compared_total: Option<i64>,
    /// What share of it has a stack.
    pub known: f64,
    /// Names of frames, as `ntoskrnl.exe!KiSwapThread`.
    pub frames: Vec<String>,
    /// The calls.
    pub nodes: Nodes,
    /// The weight in calls that are left out for being light.
    pub cut: i64,
    /// The unit of weights.
    pub unit: String,
    /// A query for the rows; stacks have none that gives the tree.
    pub sql: Option<String>,
}

/// Calls, depth first, each after its caller; by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Nodes {
    /// Place of the caller among the nodes; `null` of outermost calls.
    pub parent: Vec<Option<u32>>,
    /// Place in the frames.
    pub frame: Vec<u32>,
    /// Weight that ends in the call.
    #[serde(rename = "self")]
    pub own: Vec<i64>,
    /// Weight in it and all that it calls.
    pub total: Vec<i64>,
    /// The total in the stretch compared with.
    pub compared: Option<Vec<i64>>,
}
