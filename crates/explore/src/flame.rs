//! Flame graphs, which are call trees computed from stacks and their weights.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{CallTree, Flame, Rows};

use crate::context::{Context, check_bounds, range_of};
use crate::flame_union::{UnionNode, union};
use crate::stacks::{FrameNames, StackRequest, WeightedStacks};
use crate::{Condition, ExploreError};

/// Request for a call tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct FlameRequest {
    /// Name of the table.
    pub table: String,
    /// Name of the column of stacks.
    pub stack: String,
    /// Name of the column with the weights, which must not be negative, or `rows` to count rows.
    pub weight: String,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// True if the tree starts with the innermost frames of stacks and continues with their callers.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub inverted: bool,
    /// Frames with which a stack must start to be included, outermost first. If `inverted` is true, a stack
    /// must end with these frames, and they are given innermost first.
    #[serde(default)]
    pub root: Option<Vec<String>>,
    /// Time range to compare with. Each call then has a second weight: its weight in this time range.
    #[serde(default)]
    pub compare: Option<[i64; 2]>,
    /// Minimum weight of a returned call, as a share of the total weight; 0.0005 if absent.
    #[serde(default)]
    pub least_share: Option<f64>,
}

/// Call tree, with the names of its frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct FlameAnswer {
    /// Weight of all rows in the time range.
    pub total: i64,
    /// Weight of all rows in the time range to compare with.
    pub compared_total: Option<i64>,
    /// Share of the weight that belongs to rows with a stack, from 0 to 1.
    pub known: f64,
    /// Names of frames, for example `ntoskrnl.exe!KiSwapThread`.
    pub frames: Vec<String>,
    /// Calls of the tree.
    pub nodes: Nodes,
    /// Total weight of the omitted calls. A call is omitted if its weight is below the minimum share, or if
    /// there are more calls than the maximum number.
    pub cut: i64,
    /// Unit of the weights.
    pub unit: String,
    /// SQL query that returns the weight of each stack. SQL cannot return the tree itself, which is built
    /// from these weights. In a joined flame graph, it is the query of the first trace, and `None` if there
    /// is no trace.
    pub sql: Option<String>,
}

/// Calls, stored as columns. They are in depth-first order, so a call follows its caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Nodes {
    /// Index of the caller in these columns; `null` for outermost calls.
    pub parent: Vec<Option<u32>>,
    /// Index of the frame's name.
    pub frame: Vec<u32>,
    /// Weight of the call without its callees.
    #[serde(rename = "self")]
    pub own: Vec<i64>,
    /// Weight of the call with its callees.
    pub total: Vec<i64>,
    /// Weights of the calls with their callees, in the time range to compare with.
    pub compared: Option<Vec<i64>>,
}

/// Default of the minimum share of the total weight.
const DEFAULT_MIN_SHARE: f64 = 0.0005;
/// Maximum number of returned calls. The lightest calls are omitted.
pub(crate) const MAX_NODES: usize = 50_000;
/// Maximum number of frames in the field `root`.
const MAX_ROOT: u64 = 1_000;

/// Checks the minimum share of a request. Returns the default if it is absent.
pub(crate) fn min_share(share: Option<f64>) -> Result<f64, ExploreError> {
    match share.unwrap_or(DEFAULT_MIN_SHARE) {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        share => Err(ExploreError::OutOfBounds {
            field: "least_share",
            needed: format!("must be from 0 to 1, not {share}"),
        }),
    }
}

pub(crate) fn answer(
    context: Context<'_>,
    frame_names: &FrameNames,
    request: &FlameRequest,
) -> Result<FlameAnswer, ExploreError> {
    let least = min_share(request.least_share)?;
    let compare = range_of(request.compare)?;
    let root = request.root.as_deref().unwrap_or_default();
    check_bounds("root", root.len() as u64, 0, MAX_ROOT)?;
    let stacks = StackRequest {
        table: &request.table,
        stack: &request.stack,
        weight: &request.weight,
        range: range_of(request.range)?,
        filter: &request.filter,
    };
    let mut weighted = WeightedStacks::new(context, frame_names, &stacks, compare)?;
    if request.inverted {
        weighted.invert();
    }
    let root: Option<Vec<u32>> = root.iter().map(|name| weighted.frame(name)).collect();
    let trees: Result<Vec<CallTree>, ExploreError> = weighted
        .weights
        .iter()
        .map(|weights| tree(&weighted, weights, root.as_deref()))
        .collect();
    let mut trees = trees?.into_iter();
    let main = trees.next().unwrap_or(CallTree { nodes: Vec::new() });
    let both = union(&main, trees.next().as_ref());
    let totals = [
        weighted.totals[0],
        weighted.totals.get(1).copied().unwrap_or(0),
    ];
    let (nodes, cut) = both.without_light(totals, least);
    Ok(FlameAnswer {
        total: weighted.totals[0],
        compared_total: weighted.totals.get(1).copied(),
        known: weighted.known_share(),
        nodes: Nodes {
            compared: compare.map(|_| nodes.iter().map(|node| node.totals[1]).collect()),
            ..Nodes::new(&nodes)
        },
        frames: weighted.names,
        cut,
        unit: weighted.unit.to_owned(),
        sql: Some(weighted.sql),
    })
}

/// Builds the tree of the stacks that start with the frames `root`. If one of these frames occurs in no
/// stack, the tree is empty.
fn tree(
    weighted: &WeightedStacks,
    weights: &[i64],
    root: Option<&[u32]>,
) -> Result<CallTree, ExploreError> {
    let stacks = weighted.stacks();
    let is_under_root = |stack: &u32| {
        let frames = stacks.frames_of(*stack);
        root.is_some_and(|root| {
            frames.len() >= root.len() && frames.iter().rev().zip(root).all(|(a, b)| a == b)
        })
    };
    let ids: Vec<u32> = (0..weighted.len()).filter(is_under_root).collect();
    let weights: Vec<i64> = ids.iter().map(|stack| weights[*stack as usize]).collect();
    let mut flame = Flame::new(weighted.len())?;
    flame.add(&ids, &weights, &Rows::from_range(0..ids.len()))?;
    Ok(flame.finish(&stacks))
}

impl Nodes {
    pub(crate) fn new(nodes: &[UnionNode]) -> Nodes {
        Nodes {
            parent: nodes.iter().map(|node| node.parent).collect(),
            frame: nodes.iter().map(|node| node.frame).collect(),
            own: nodes.iter().map(|node| node.own).collect(),
            total: nodes.iter().map(|node| node.totals[0]).collect(),
            compared: None,
        }
    }

    /// Returns the calls of a tree, without its root, whose share of the weight `total` is at least `share`.
    pub(crate) fn from_tree(tree: &CallTree, total: i64, share: f64) -> Nodes {
        Nodes::new(&union(tree, None).without_light([total, 0], share).0)
    }
}
