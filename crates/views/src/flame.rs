//! Sums of weights by stack, as call trees.

use crate::call_tree::Path;
use crate::{CallTree, Cancelled, NULL_ID, Rows, Stacks, TooLarge};

/// Sums weights by stack and builds call trees from the sums.
#[derive(Clone, Debug)]
pub struct Flame {
    /// Sum of the weights for each stack id. The last entry is the sum for unknown stacks.
    weights: Vec<i64>,
}

/// Callers and callees of one frame.
///
/// If a stack contains the frame several times (recursion), the stack counts once, at the outermost call of
/// the frame. In both trees, the frame is the only child of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Butterfly {
    /// Tree of callers: below the frame are its callers, and below each caller are the callers of that caller. The
    /// self weight of a node is the weight of the stacks whose outermost frame is this node.
    pub callers: CallTree,
    /// Tree of callees: below the frame are its callees.
    pub callees: CallTree,
}

impl Flame {
    /// Creates a kernel without rows, for stack ids below `stacks`.
    ///
    /// # Errors
    /// Returns an error if there are too many stacks.
    pub fn new(stacks: u32) -> Result<Flame, TooLarge> {
        Ok(Flame {
            weights: vec![0; TooLarge::check(stacks as usize + 1, 1)?],
        })
    }

    /// Adds the stacks and weights of rows. Rows with an unknown or negative weight are ignored.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is shorter than the rows.
    pub fn add(
        &mut self,
        stacks: &[u32],
        weights: &[i64],
        rows: &Rows<'_>,
    ) -> Result<(), Cancelled> {
        let unknown = self.weights.len() - 1;
        rows.each_run(|run| {
            for (stack, weight) in stacks[run.clone()].iter().zip(&weights[run]) {
                let sum = &mut self.weights[(*stack as usize).min(unknown)];
                *sum = sum.saturating_add((*weight).max(0));
            }
        })
    }

    /// Adds the sums of another kernel.
    ///
    /// # Panics
    /// Panics if the other kernel has another number of stacks.
    pub fn merge(&mut self, other: &Flame) {
        assert_eq!(self.weights.len(), other.weights.len(), "stacks");
        for (weight, other) in self.weights.iter_mut().zip(&other.weights) {
            *weight = weight.saturating_add(*other);
        }
    }

    /// Returns the tree of all stacks. The outermost callers are the children of the root.
    pub fn finish(&self, stacks: &Stacks<'_>) -> CallTree {
        let paths = self.weighted(stacks).map(|(frames, weight)| Path {
            frames,
            reversed: true,
            weight,
        });
        CallTree::merge(paths.collect())
    }

    /// Returns the callers and callees of a frame.
    pub fn butterfly(&self, stacks: &Stacks<'_>, frame: u32) -> Butterfly {
        let (mut callers, mut callees) = (Vec::new(), Vec::new());
        for (frames, weight) in self.weighted(stacks) {
            let Some(outermost) = frames.iter().rposition(|other| *other == frame) else {
                continue;
            };
            callers.push(Path {
                frames: &frames[outermost..],
                reversed: false,
                weight,
            });
            callees.push(Path {
                frames: &frames[..=outermost],
                reversed: true,
                weight,
            });
        }
        Butterfly {
            callers: CallTree::merge(callers),
            callees: CallTree::merge(callees),
        }
    }

    /// Returns the frames and weights of the stacks whose weight is greater than 0. The unknown stack has no
    /// frames.
    fn weighted<'a>(&self, stacks: &Stacks<'a>) -> impl Iterator<Item = (&'a [u32], i64)> {
        let unknown = self.weights.len() - 1;
        let weights = self.weights.iter().enumerate();
        weights
            .filter(|(_, weight)| **weight > 0)
            .map(move |(stack, weight)| {
                let id = if stack == unknown {
                    NULL_ID
                } else {
                    stack as u32
                };
                (stacks.frames_of(id), *weight)
            })
    }
}
