//! Butterfly view: functions by weight, and the callers and callees of one function.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{Flame, Rows};

use crate::context::{Context, check_bounds, range_of};
use crate::flame::min_share;
use crate::stacks::{FrameNames, StackRequest, WeightedStacks};
use crate::{Condition, ExploreError, Nodes};

/// Request for all functions, or for the callers and callees of one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct ButterflyRequest {
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
    /// Function whose callers and callees are requested; all functions if absent.
    #[serde(default)]
    pub frame: Option<String>,
    /// Order of the functions.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub order: ButterflyOrder,
    /// Maximum number of functions, up to 10 000; 1000 if absent.
    #[serde(default)]
    pub first: Option<u32>,
    /// Minimum weight of a returned call, as a share of the total weight; 0.0005 if absent.
    #[serde(default)]
    pub least_share: Option<f64>,
}

/// Order of functions by descending weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ButterflyOrder {
    /// Orders by the weight of the function and its callees.
    #[default]
    Total,
    /// Orders by the weight of the function itself.
    #[serde(rename = "self")]
    Own,
}

/// Functions, or the callers and callees of one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(optional_fields)]
pub struct ButterflyAnswer {
    /// Weight of all rows.
    pub total: i64,
    /// Share of the weight that belongs to rows with a stack, from 0 to 1.
    pub known: f64,
    /// Number of functions before the limit is applied.
    pub functions_total: usize,
    /// Functions with their weights; absent if the request names a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<FunctionWeight>>,
    /// Names of the functions in `callers` and `callees`, which refer to them by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable)]
    pub frames: Vec<String>,
    /// Tree of the callers. Its root is the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<Nodes>,
    /// Tree of the callees. Its root is the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callees: Option<Nodes>,
    /// Unit of the weights.
    pub unit: String,
}

/// Weights of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FunctionWeight {
    /// Name of the function.
    pub label: String,
    /// Weight of the stacks whose innermost frame is the function.
    #[serde(rename = "self")]
    pub own: i64,
    /// Weight of the stacks that contain the function. A stack counts once, even if it contains the function
    /// several times.
    pub total: i64,
}

/// Default of the maximum number of functions.
const DEFAULT_FUNCTIONS: u32 = 1_000;
/// Maximum number of functions in an answer.
const MAX_FUNCTIONS: u64 = 10_000;

pub(crate) fn answer(
    context: Context<'_>,
    frame_names: &FrameNames,
    request: &ButterflyRequest,
) -> Result<ButterflyAnswer, ExploreError> {
    let least = min_share(request.least_share)?;
    let first = request.first.unwrap_or(DEFAULT_FUNCTIONS);
    check_bounds("first", first.into(), 0, MAX_FUNCTIONS)?;
    let stacks = StackRequest {
        table: &request.table,
        stack: &request.stack,
        weight: &request.weight,
        range: range_of(request.range)?,
        filter: &request.filter,
    };
    let weighted = WeightedStacks::new(context, frame_names, &stacks, None)?;
    let mut answer = ButterflyAnswer {
        total: weighted.totals[0],
        known: weighted.known_share(),
        functions_total: weighted.names.len(),
        functions: None,
        frames: Vec::new(),
        callers: None,
        callees: None,
        unit: weighted.unit.to_owned(),
    };
    let Some(name) = &request.frame else {
        answer.functions = Some(functions(&weighted, request.order, first as usize));
        return Ok(answer);
    };
    // If no stack contains the function, the function has no callers and no callees.
    let frame = weighted.frame(name).unwrap_or(views::NULL_ID);
    let mut flame = Flame::new(weighted.len())?;
    let ids: Vec<u32> = (0..weighted.len()).collect();
    flame.add(&ids, &weighted.weights[0], &Rows::from_range(0..ids.len()))?;
    let butterfly = flame.butterfly(&weighted.stacks(), frame);
    answer.callers = Some(Nodes::from_tree(&butterfly.callers, answer.total, least));
    answer.callees = Some(Nodes::from_tree(&butterfly.callees, answer.total, least));
    answer.frames = weighted.names;
    Ok(answer)
}

/// Returns the functions in the requested order.
fn functions(
    weighted: &WeightedStacks,
    order: ButterflyOrder,
    first: usize,
) -> Vec<FunctionWeight> {
    let mut weights = vec![(0i64, 0i64); weighted.names.len()];
    // Index of the last stack in which each function was counted.
    let mut counted = vec![u32::MAX; weighted.names.len()];
    for (stack, weight) in (0..).zip(&weighted.weights[0]) {
        let frames = weighted.stacks().frames_of(stack);
        if let Some(innermost) = frames.first() {
            let own = &mut weights[*innermost as usize].0;
            *own = own.saturating_add(*weight);
        }
        for frame in frames {
            let frame = *frame as usize;
            if counted[frame] != stack {
                counted[frame] = stack;
                weights[frame].1 = weights[frame].1.saturating_add(*weight);
            }
        }
    }
    let mut functions: Vec<FunctionWeight> = weighted
        .names
        .iter()
        .zip(weights)
        .map(|(label, (own, total))| FunctionWeight {
            label: label.clone(),
            own,
            total,
        })
        .collect();
    functions.sort_by_key(|function| match order {
        ButterflyOrder::Total => Reverse((function.total, function.own)),
        ButterflyOrder::Own => Reverse((function.own, function.total)),
    });
    functions.truncate(first);
    functions
}
