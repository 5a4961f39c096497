//! Weighted stacks, merged into a tree.

/// The stacks that ids name: lists of frame ids, the callee first.
#[derive(Clone, Copy, Debug)]
pub struct Stacks<'a> {
    /// Where the frames of each stack start, and one more where those of the last end. Where one is
    /// out of order or beyond the frames, the stack has no frames.
    pub offsets: &'a [u32],
    /// The frames of all stacks, one after the other.
    pub frames: &'a [u32],
}

impl<'a> Stacks<'a> {
    /// The frames of a stack, callee first; none if there is no such stack.
    pub fn frames_of(&self, stack: u32) -> &'a [u32] {
        let stack = stack as usize;
        match self.offsets.get(stack..stack.saturating_add(2)) {
            Some(&[start, end]) => self.frames.get(start as usize..end as usize),
            _ => None,
        }
        .unwrap_or_default()
    }
}

/// Stacks merged where they begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTree {
    /// Depth first: each node before those below it, siblings in the order of their frame ids. The
    /// first is the root, which is no frame; its own weight is that of rows without a stack.
    pub nodes: Vec<CallNode>,
}

/// A frame as called by the frames above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// The frame's id; [`NULL_ID`](crate::NULL_ID) for the root, as for a frame that is unknown.
    pub frame: u32,
    /// The node above, by its place; the root's is its own.
    pub parent: usize,
    /// Weight of the rows that end here.
    pub self_weight: i64,
    /// Weight of the rows that end here or below. Where this is more than the node's own and its
    /// children's together, small children were left out.
    pub total_weight: i64,
}

/// Frames from the root of a tree on, with a weight that is not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    /// The frames, in the stack's order.
    pub(crate) frames: &'a [u32],
    /// Whether the tree's root is at their end.
    pub(crate) reversed: bool,
    pub(crate) weight: i64,
}

impl Path<'_> {
    fn steps(&self) -> impl Iterator<Item = u32> {
        let last = self.frames.len().wrapping_sub(1);
        (0..self.frames.len())
            .map(move |step| self.frames[if self.reversed { last - step } else { step }])
    }
}

impl CallTree {
    /// Merges the paths and leaves out the nodes (and all below) whose total is less than this share
    /// of the root's.
    pub(crate) fn merge(mut paths: Vec<Path<'_>>, min_share: f64) -> CallTree {
        // Paths that begin alike become neighbours, and the tree grows depth first without a look-up.
        paths.sort_by(|a, b| a.steps().cmp(b.steps()));
        let mut nodes = vec![CallNode {
            frame: crate::NULL_ID,
            parent: 0,
            self_weight: 0,
            total_weight: 0,
        }];
        // The places of the nodes of the path before, the root's first.
        let mut open = vec![0];
        for path in &paths {
            let alike = open[1..]
                .iter()
                .zip(path.steps())
                .take_while(|(node, frame)| nodes[**node].frame == *frame)
                .count();
            open.truncate(alike + 1);
            for frame in path.steps().skip(alike) {
                let parent = open[open.len() - 1];
                open.push(nodes.len());
                nodes.push(CallNode {
                    frame,
                    parent,
                    self_weight: 0,
                    total_weight: 0,
                });
            }
            let end = &mut nodes[open[open.len() - 1]];
            end.self_weight = end.self_weight.saturating_add(path.weight);
        }
        for at in (0..nodes.len()).rev() {
            let node = &mut nodes[at];
            node.total_weight = node.total_weight.saturating_add(node.self_weight);
            let (parent, total) = (node.parent, node.total_weight);
            if at > 0 {
                nodes[parent].total_weight = nodes[parent].total_weight.saturating_add(total);
            }
        }
        CallTree { nodes }.cut(min_share)
    }

    fn cut(self, min_share: f64) -> CallTree {
        let least = min_share * self.nodes[0].total_weight as f64;
        let mut nodes: Vec<CallNode> = Vec::new();
        // Where each node went, if it stayed.
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = if at == 0 {
                Some(0)
            } else {
                places[node.parent]
            };
            let stays = at == 0 || node.total_weight as f64 >= least;
            places.push(parent.filter(|_| stays).map(|parent| {
                nodes.push(CallNode { parent, ..*node });
                nodes.len() - 1
            }));
        }
        CallTree { nodes }
    }
}
