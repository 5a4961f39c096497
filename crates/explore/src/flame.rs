//! Where the weight of stacks lies.

use serde::{Deserialize, Serialize};
use views::{CallNode, CallTree, Flame, Rows};

use crate::selection::{Ask, range_of};
use crate::stacks::{Frames, Weighed, Weighing};
use crate::{Condition, ExploreError};

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

/// What of the whole weight a call must have to be shown, where nothing is said.
pub(crate) const LEAST_SHARE: f64 = 0.0005;
/// The most calls of an answer; of more the lightest are left out.
const MOST_NODES: usize = 50_000;
/// The most frames of a root.
const DEEPEST_ROOT: usize = 1_000;

/// A share of a request.
pub(crate) fn share(share: Option<f64>) -> Result<f64, ExploreError> {
    match share.unwrap_or(LEAST_SHARE) {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        share => Err(ExploreError::OutOfBounds {
            field: "least_share",
            needed: format!("must be from 0 to 1, not {share}"),
        }),
    }
}

pub(crate) fn answer(
    ask: Ask<'_>,
    known: &Frames,
    request: &FlameRequest,
) -> Result<FlameAnswer, ExploreError> {
    let least = share(request.least_share)?;
    let compare = range_of(request.compare)?;
    let root = request.root.as_deref().unwrap_or_default();
    crate::selection::bounded("root", root.len() as u64, 0, DEEPEST_ROOT as u64)?;
    let weighing = Weighing {
        table: &request.table,
        stack: &request.stack,
        weight: &request.weight,
        range: range_of(request.range)?,
        filter: &request.filter,
    };
    let mut weighed = Weighed::new(ask, known, &weighing, compare)?;
    if request.inverted {
        weighed.invert();
    }
    let root: Option<Vec<u32>> = root.iter().map(|name| weighed.frame(name)).collect();
    let trees: Result<Vec<CallTree>, ExploreError> = weighed
        .weights
        .iter()
        .map(|weights| tree(&weighed, weights, root.as_deref()))
        .collect();
    let mut trees = trees?.into_iter();
    let main = trees.next().unwrap_or(CallTree { nodes: Vec::new() });
    let both = union(&main, trees.next().as_ref());
    let totals = [
        weighed.totals[0],
        weighed.totals.get(1).copied().unwrap_or(0),
    ];
    let (nodes, cut) = both.lightened(totals, least);
    Ok(FlameAnswer {
        total: weighed.totals[0],
        compared_total: weighed.totals.get(1).copied(),
        known: weighed.known(),
        nodes: Nodes {
            compared: compare.map(|_| nodes.iter().map(|node| node.totals[1]).collect()),
            ..Nodes::of(&nodes)
        },
        frames: weighed.names,
        cut,
        unit: weighed.unit.to_owned(),
        sql: Some(weighed.sql),
    })
}

/// The tree of the stacks that begin with the root; of none if the root is no frame of any.
fn tree(
    weighed: &Weighed,
    weights: &[i64],
    root: Option<&[u32]>,
) -> Result<CallTree, ExploreError> {
    let stacks = weighed.stacks();
    let is_under_root = |stack: &u32| {
        let frames = stacks.frames_of(*stack);
        root.is_some_and(|root| {
            frames.len() >= root.len() && frames.iter().rev().zip(root).all(|(a, b)| a == b)
        })
    };
    let ids: Vec<u32> = (0..weighed.len()).filter(is_under_root).collect();
    let weights: Vec<i64> = ids.iter().map(|stack| weights[*stack as usize]).collect();
    let mut flame = Flame::new(weighed.len())?;
    flame.add(&ids, &weights, &Rows::of(0..ids.len()))?;
    Ok(flame.finish(&stacks, 0.0))
}

/// A call with its weights in one stretch of time and another.
#[derive(Clone, Copy, Debug)]
struct Compared {
    parent: Option<u32>,
    frame: u32,
    own: i64,
    totals: [i64; 2],
}

/// Calls of two trees.
struct Union(Vec<Compared>);

/// The calls of both trees, depth first, without their roots. Siblings are in the order of frames,
/// as they are in the trees.
fn union(first: &CallTree, second: Option<&CallTree>) -> Union {
    let trees = [Some(first), second];
    let children: Vec<Vec<Vec<u32>>> = trees
        .iter()
        .map(|tree| tree.map_or_else(Vec::new, children))
        .collect();
    let node = |tree: usize, place: u32| -> &CallNode {
        &trees[tree].expect("a tree with nodes").nodes[place as usize]
    };
    // Calls yet to be given, the next one last: the place in each tree, and the caller.
    type Open = ([Option<u32>; 2], Option<u32>);
    let mut nodes = Vec::new();
    let roots = trees.map(|tree| tree.filter(|tree| !tree.nodes.is_empty()).map(|_| 0));
    let mut open: Vec<Open> = Vec::new();
    let mut next: Option<Open> = Some((roots, None));
    while let Some((places, parent)) = next {
        let is_root = places.contains(&Some(0));
        let this = if is_root {
            None
        } else {
            let of = |tree: usize| places[tree].map(|place| node(tree, place));
            let (a, b) = (of(0), of(1));
            let frame = a.or(b).map_or(0, |node| node.frame);
            nodes.push(Compared {
                parent,
                frame,
                own: a.map_or(0, |node| node.self_weight),
                totals: [a, b].map(|node| node.map_or(0, |node| node.total_weight)),
            });
            Some(nodes.len() as u32 - 1)
        };
        // Both lists of callees are in the order of frames.
        let of = |tree: usize| {
            let place = places[tree];
            place.map_or(&[][..], |place| children[tree][place as usize].as_slice())
        };
        let (mut a, mut b) = (of(0), of(1));
        let mut callees: Vec<Open> = Vec::with_capacity(a.len().max(b.len()));
        loop {
            let frame =
                |tree: usize, list: &[u32]| list.first().map(|place| node(tree, *place).frame);
            let (of_a, of_b) = (frame(0, a), frame(1, b));
            let Some(least) = [of_a, of_b].into_iter().flatten().min() else {
                break;
            };
            let take = |list: &mut &[u32], of: Option<u32>| {
                let (first, rest) = list.split_first().filter(|_| of == Some(least))?;
                *list = rest;
                Some(*first)
            };
            callees.push(([take(&mut a, of_a), take(&mut b, of_b)], this));
        }
        open.extend(callees.into_iter().rev());
        next = open.pop();
    }
    Union(nodes)
}

/// The places of each call's callees.
fn children(tree: &CallTree) -> Vec<Vec<u32>> {
    let mut children = vec![Vec::new(); tree.nodes.len()];
    for (place, node) in (0..).zip(&tree.nodes).skip(1) {
        children[node.parent].push(place);
    }
    children
}

impl Union {
    /// Without calls that have less than a share of the whole weight in both, and as many as an
    /// answer may have; and the weight that is left out.
    fn lightened(self, totals: [i64; 2], share: f64) -> (Vec<Compared>, i64) {
        let heaviest = |node: &Compared| -> f64 {
            let share = |tree: usize| node.totals[tree] as f64 / totals[tree].max(1) as f64;
            share(0).max(share(1))
        };
        let mut least = share;
        if self.0.iter().filter(|node| heaviest(node) >= least).count() > MOST_NODES {
            let mut shares: Vec<f64> = self.0.iter().map(heaviest).collect();
            shares.sort_unstable_by(|a, b| b.total_cmp(a));
            least = shares[MOST_NODES].max(least).next_up();
        }
        let all: i64 = own(&self.0);
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.0.len());
        let mut kept: Vec<Compared> = Vec::new();
        for node in &self.0 {
            let parent = node.parent.map(|parent| places[parent as usize]);
            let stays = heaviest(node) >= least && parent != Some(None);
            places.push(stays.then(|| {
                kept.push(Compared {
                    parent: parent.flatten(),
                    ..*node
                });
                kept.len() as u32 - 1
            }));
        }
        let cut = all.saturating_sub(own(&kept));
        (kept, cut)
    }
}

fn own(nodes: &[Compared]) -> i64 {
    nodes
        .iter()
        .fold(0, |sum: i64, node| sum.saturating_add(node.own))
}

impl Nodes {
    fn of(nodes: &[Compared]) -> Nodes {
        Nodes {
            parent: nodes.iter().map(|node| node.parent).collect(),
            frame: nodes.iter().map(|node| node.frame).collect(),
            own: nodes.iter().map(|node| node.own).collect(),
            total: nodes.iter().map(|node| node.totals[0]).collect(),
            compared: None,
        }
    }

    /// The calls of a tree without its root, that have a share of a weight.
    pub(crate) fn of_tree(tree: &CallTree, total: i64, share: f64) -> Nodes {
        Nodes::of(&union(tree, None).lightened([total, 0], share).0)
    }
}
