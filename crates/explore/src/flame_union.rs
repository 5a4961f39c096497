//! Union of two call trees. The trees belong to two time ranges, or are sums of the flame graphs of several
//! traces.

use std::collections::BTreeSet;

use views::{CallNode, CallTree, Flame, Rows, Stacks};

use crate::flame::{MAX_NODES, Nodes};
use crate::{ExploreError, FlameAnswer};

impl FlameAnswer {
    /// Joins flame graphs of several traces. The weights of the result are the sums of `these`, and the
    /// compared weights are the sums of `others`. Calls are matched by the names of their frames. Calls whose
    /// share of the weight is below `least_share` in both sums are omitted.
    ///
    /// # Errors
    /// Returns an error if the flame graphs have too many calls.
    pub fn joined(
        these: &[FlameAnswer],
        others: &[FlameAnswer],
        least_share: f64,
    ) -> Result<FlameAnswer, ExploreError> {
        let all = || these.iter().chain(others);
        let names: BTreeSet<&str> = (all().flat_map(|tree| &tree.frames))
            .map(String::as_str)
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        let total = |side: &[FlameAnswer]| {
            let totals = side.iter().map(|tree| tree.total);
            totals.fold(0, i64::saturating_add)
        };
        let totals = [total(these), total(others)];
        let trees = [tree(these, &names)?, tree(others, &names)?];
        let (nodes, cut) = union(&trees[0], Some(&trees[1])).without_light(totals, least_share);
        let known: f64 = these
            .iter()
            .map(|tree| tree.known * tree.total as f64)
            .sum();
        let mut nodes = Nodes {
            compared: Some(nodes.iter().map(|node| node.totals[1]).collect()),
            ..Nodes::new(&nodes)
        };
        let used: BTreeSet<u32> = nodes.frame.iter().copied().collect();
        let used: Vec<u32> = used.into_iter().collect();
        for frame in &mut nodes.frame {
            *frame = used.partition_point(|other| other < frame) as u32;
        }
        let first = all().next();
        Ok(FlameAnswer {
            total: totals[0],
            compared_total: Some(totals[1]),
            known: if totals[0] > 0 {
                known / totals[0] as f64
            } else {
                0.0
            },
            frames: (used.iter())
                .filter_map(|frame| Some((*names.get(*frame as usize)?).to_owned()))
                .collect(),
            nodes,
            cut: (these.iter().map(|tree| tree.cut)).fold(cut, i64::saturating_add),
            unit: first.map_or_else(String::new, |tree| tree.unit.clone()),
            sql: first.and_then(|tree| tree.sql.clone()),
        })
    }
}

/// Builds the sum of call trees. Frame numbers of the result are indexes in `names`, which must be sorted.
fn tree(answers: &[FlameAnswer], names: &[&str]) -> Result<CallTree, ExploreError> {
    let (mut offsets, mut frames, mut weights) = (vec![0], Vec::new(), Vec::new());
    for FlameAnswer {
        frames: own, nodes, ..
    } in answers
    {
        let place = |name: &String| names.binary_search(&name.as_str()).unwrap_or(0) as u32;
        let places: Vec<u32> = own.iter().map(place).collect();
        // Weight of each call without its listed callees. This weight includes callees that the answer omits.
        let mut remaining = nodes.total.clone();
        for (parent, total) in nodes.parent.iter().zip(&nodes.total) {
            if let Some(parent) = parent {
                let weight = &mut remaining[*parent as usize];
                *weight = weight.saturating_sub(*total);
            }
        }
        for (node, weight) in remaining.into_iter().enumerate() {
            if weight <= 0 {
                continue;
            }
            let mut at = Some(node);
            while let Some(call) = at {
                frames.push(places[nodes.frame[call] as usize]);
                at = nodes.parent[call].map(|parent| parent as usize);
            }
            weights.push(weight);
            offsets.push(u32::try_from(frames.len()).map_err(|_| too_many())?);
        }
    }
    let ids: Vec<u32> = (0..u32::try_from(weights.len()).map_err(|_| too_many())?).collect();
    let mut flame = Flame::new(ids.len() as u32)?;
    flame.add(&ids, &weights, &Rows::from_range(0..ids.len()))?;
    Ok(flame.finish(&Stacks {
        offsets: &offsets,
        frames: &frames,
    }))
}

fn too_many() -> ExploreError {
    ExploreError::OutOfBounds {
        field: "range",
        needed: "contains too many calls; choose a shorter one".to_owned(),
    }
}

/// Call with its weights in two trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnionNode {
    pub(crate) parent: Option<u32>,
    pub(crate) frame: u32,
    /// Weight without callees, in the first tree.
    pub(crate) own: i64,
    /// Weights with callees, in both trees.
    pub(crate) totals: [i64; 2],
}

/// Calls that occur in at least one of two trees.
pub(crate) struct Union(Vec<UnionNode>);

/// Merges two trees. The calls are in depth-first order, without the roots. Calls with the same caller are
/// ordered by frame.
pub(crate) fn union(first: &CallTree, second: Option<&CallTree>) -> Union {
    let trees = [Some(first), second];
    let children: Vec<Vec<Vec<u32>>> = trees
        .iter()
        .map(|tree| tree.map_or_else(Vec::new, children))
        .collect();
    let node = |tree: usize, place: u32| -> &CallNode {
        &trees[tree].expect("the tree has nodes").nodes[place as usize]
    };
    // Pending call: its index in each of the two trees, and the index of its caller in `nodes`.
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
            let node_of = |tree: usize| places[tree].map(|place| node(tree, place));
            let (a, b) = (node_of(0), node_of(1));
            let frame = a.or(b).map_or(0, |node| node.frame);
            nodes.push(UnionNode {
                parent,
                frame,
                own: a.map_or(0, |node| node.self_weight),
                totals: [a, b].map(|node| node.map_or(0, |node| node.total_weight)),
            });
            Some(nodes.len() as u32 - 1)
        };
        // Both lists of callees are sorted by frame.
        let child = |tree: usize| {
            let place = places[tree];
            place.map_or(&[][..], |place| children[tree][place as usize].as_slice())
        };
        let (mut a, mut b) = (child(0), child(1));
        let mut callees: Vec<Open> = Vec::with_capacity(a.len().max(b.len()));
        loop {
            let frame =
                |tree: usize, list: &[u32]| list.first().map(|place| node(tree, *place).frame);
            let (of_a, of_b) = (frame(0, a), frame(1, b));
            let Some(least) = [of_a, of_b].into_iter().flatten().min() else {
                break;
            };
            let take = |list: &mut &[u32], head: Option<u32>| {
                let (first, rest) = list.split_first().filter(|_| head == Some(least))?;
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

/// Returns the indices of the callees of each call.
fn children(tree: &CallTree) -> Vec<Vec<u32>> {
    let mut children = vec![Vec::new(); tree.nodes.len()];
    for (place, node) in (0..).zip(&tree.nodes).skip(1) {
        children[node.parent].push(place);
    }
    children
}

impl Union {
    /// Removes calls whose share of the total weight is below `share` in both trees. If too many calls
    /// remain, also removes the lightest ones. Returns the remaining calls and the removed weight.
    pub(crate) fn without_light(self, totals: [i64; 2], share: f64) -> (Vec<UnionNode>, i64) {
        let heaviest = |node: &UnionNode| -> f64 {
            let share = |tree: usize| node.totals[tree] as f64 / totals[tree].max(1) as f64;
            share(0).max(share(1))
        };
        let mut least = share;
        if self.0.iter().filter(|node| heaviest(node) >= least).count() > MAX_NODES {
            let mut shares: Vec<f64> = self.0.iter().map(heaviest).collect();
            shares.sort_unstable_by(|a, b| b.total_cmp(a));
            least = shares[MAX_NODES].max(least).next_up();
        }
        let all: i64 = own(&self.0);
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.0.len());
        let mut nodes: Vec<UnionNode> = Vec::new();
        for node in &self.0 {
            let parent = node.parent.map(|parent| places[parent as usize]);
            let stays = heaviest(node) >= least && parent != Some(None);
            places.push(stays.then(|| {
                nodes.push(UnionNode {
                    parent: parent.flatten(),
                    ..*node
                });
                nodes.len() as u32 - 1
            }));
        }
        let cut = all.saturating_sub(own(&nodes));
        (nodes, cut)
    }
}

/// Returns the sum of the weights of the calls without their callees.
fn own(nodes: &[UnionNode]) -> i64 {
    nodes
        .iter()
        .fold(0, |sum: i64, node| sum.saturating_add(node.own))
}
