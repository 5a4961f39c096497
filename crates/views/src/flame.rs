//! Where the weight of stacks lies.

use crate::call_tree::Path;
use crate::{CallTree, Cancelled, NULL_ID, Rows, Stacks, TooLarge};

/// Adds up weight by stack, and makes trees of it.
#[derive(Clone, Debug)]
pub struct Flame {
    /// By stack, the unknown last.
    weights: Vec<i64>,
    skipped: u64,
}

/// One frame in the middle: who calls it, and whom it calls.
///
/// A stack in which the frame recurs counts once, at its outermost call. In both trees the root has
/// the frame as its one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Butterfly {
    /// Below the frame its callers, below these theirs; a node's own weight is of stacks that begin
    /// with it.
    pub callers: CallTree,
    /// Below the frame what it called.
    pub callees: CallTree,
}

impl Flame {
    /// No weight yet, for ids of stacks below `stacks`.
    ///
    /// # Errors
    /// When there are too many.
    pub fn new(stacks: u32) -> Result<Flame, TooLarge> {
        Ok(Flame {
            weights: vec![0; TooLarge::check(stacks as usize + 1, 1)?],
            skipped: 0,
        })
    }

    /// Adds rows: the stack and the weight of each. A row whose weight is unknown or negative is
    /// skipped.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
    pub fn add(
        &mut self,
        stacks: &[u32],
        weights: &[i64],
        rows: &Rows<'_>,
    ) -> Result<(), Cancelled> {
        let unknown = self.weights.len() - 1;
        rows.each_run(|run| {
            for (stack, weight) in stacks[run.clone()].iter().zip(&weights[run]) {
                if *weight < 0 {
                    self.skipped += 1;
                    continue;
                }
                let sum = &mut self.weights[(*stack as usize).min(unknown)];
                *sum = sum.saturating_add(*weight);
            }
        })
    }

    /// Adds what another of as many stacks has seen.
    ///
    /// # Panics
    /// If it is of more or fewer stacks.
    pub fn merge(&mut self, other: &Flame) {
        assert_eq!(self.weights.len(), other.weights.len(), "stacks");
        for (weight, other) in self.weights.iter_mut().zip(&other.weights) {
            *weight = weight.saturating_add(*other);
        }
        self.skipped += other.skipped;
    }

    /// Rows left out for an unknown or negative weight.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// All stacks as one tree, callers above callees, without the nodes whose total is less than
    /// this share (0 to 1) of all.
    pub fn finish(&self, stacks: &Stacks<'_>, min_share: f64) -> CallTree {
        let paths = self.weighted(stacks).map(|(frames, weight)| Path {
            frames,
            reversed: true,
            weight,
        });
        CallTree::merge(paths.collect(), min_share)
    }

    /// The callers and callees of a frame, without the nodes whose total is less than this share of
    /// the frame's.
    pub fn butterfly(&self, stacks: &Stacks<'_>, frame: u32, min_share: f64) -> Butterfly {
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
            callers: CallTree::merge(callers, min_share),
            callees: CallTree::merge(callees, min_share),
        }
    }

    /// The stacks that have weight; the unknown one has no frames.
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
