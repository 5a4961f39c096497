//! Functions by the weight of the stacks that they are in, and who called one and what it called.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use views::{Flame, Rows};

use crate::flame::share;
use crate::selection::{Ask, bounded, range_of};
use crate::stacks::{Frames, Weighed, Weighing};
use crate::{Condition, ExploreError, Nodes};

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

/// Functions given, where nothing is said, and at most.
const USUAL_FUNCTIONS: u32 = 1_000;
const MOST_FUNCTIONS: u64 = 10_000;

pub(crate) fn answer(
    ask: Ask<'_>,
    known: &Frames,
    request: &ButterflyRequest,
) -> Result<ButterflyAnswer, ExploreError> {
    let least = share(request.least_share)?;
    let first = request.first.unwrap_or(USUAL_FUNCTIONS);
    bounded("first", first.into(), 0, MOST_FUNCTIONS)?;
    let weighing = Weighing {
        table: &request.table,
        stack: &request.stack,
        weight: &request.weight,
        range: range_of(request.range)?,
        filter: &request.filter,
    };
    let weighed = Weighed::new(ask, known, &weighing, None)?;
    let mut answer = ButterflyAnswer {
        total: weighed.totals[0],
        known: weighed.known(),
        functions_total: weighed.names.len(),
        functions: None,
        frames: Vec::new(),
        callers: None,
        callees: None,
        unit: weighed.unit.to_owned(),
    };
    let Some(name) = &request.frame else {
        answer.functions = Some(functions(&weighed, request.order, first as usize));
        return Ok(answer);
    };
    // Of a function that is in no stack there is nothing to tell.
    let frame = weighed.frame(name).unwrap_or(views::NULL_ID);
    let mut flame = Flame::new(weighed.len())?;
    let ids: Vec<u32> = (0..weighed.len()).collect();
    flame.add(&ids, &weighed.weights[0], &Rows::of(0..ids.len()))?;
    let butterfly = flame.butterfly(&weighed.stacks(), frame, 0.0);
    answer.callers = Some(Nodes::of_tree(&butterfly.callers, answer.total, least));
    answer.callees = Some(Nodes::of_tree(&butterfly.callees, answer.total, least));
    answer.frames = weighed.names;
    Ok(answer)
}

fn functions(weighed: &Weighed, order: ButterflyOrder, first: usize) -> Vec<FunctionWeight> {
    let mut weights = vec![(0i64, 0i64); weighed.names.len()];
    // The last stack in which a function was counted.
    let mut counted = vec![u32::MAX; weighed.names.len()];
    for (stack, weight) in (0..).zip(&weighed.weights[0]) {
        let frames = weighed.stacks().frames_of(stack);
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
    let mut functions: Vec<FunctionWeight> = weighed
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
