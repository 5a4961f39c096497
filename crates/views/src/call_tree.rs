//! Call trees: weighted stacks as paths from a root. Paths that begin with the same frames share nodes. A path
//! begins with the innermost or the outermost frame of its stack.

/// Stacks by id: lists of frame ids, the innermost frame first.
#[derive(Clone, Copy, Debug)]
pub struct Stacks<'a> {
    /// For each stack, the index of its first frame in `frames`. The last entry is the end of the last stack. If the
    /// two bounds of a stack are out of order or beyond `frames`, the stack has no frames.
    pub offsets: &'a [u32],
    /// Frames of all stacks, concatenated.
    pub frames: &'a [u32],
}

impl<'a> Stacks<'a> {
    /// Returns the frames of a stack, the innermost first. Returns an empty slice if there is no such stack.
    pub fn frames_of(&self, stack: u32) -> &'a [u32] {
        let stack = stack as usize;
        match self.offsets.get(stack..stack.saturating_add(2)) {
            Some(&[start, end]) => self.frames.get(start as usize..end as usize),
            _ => None,
        }
        .unwrap_or_default()
    }
}

/// Tree of stacks. Each stack is a path from the root. Paths that begin with the same frames share nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTree {
    /// Nodes in depth-first order: a node comes before its descendants, and siblings are sorted by frame id.
    /// The first node is the root, which is not a frame. The root's own weight is the weight of the rows
    /// without a stack.
    pub nodes: Vec<CallNode>,
}

/// Node of a call tree: a frame on the path from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// Id of the frame. The root and unknown frames have [`NULL_ID`](crate::NULL_ID).
    pub frame: u32,
    /// Index of the parent node. The root is its own parent.
    pub parent: usize,
    /// Weight of the rows whose path ends at this node.
    pub self_weight: i64,
    /// Weight of the rows whose path ends at this node or at a node below it.
    pub total_weight: i64,
}

/// Path from the root of the tree to a node. Its weight is at least 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    /// Frames in the order of the stack, the innermost first.
    pub(crate) frames: &'a [u32],
    /// True if the path starts with the last frame of `frames`, which is the outermost frame.
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
    /// Merges paths into a tree.
    pub(crate) fn merge(mut paths: Vec<Path<'_>>) -> CallTree {
        // After sorting, paths with common first frames are adjacent. Therefore the tree can be built depth
        // first without look-ups.
        paths.sort_by(|a, b| a.steps().cmp(b.steps()));
        let mut nodes = vec![CallNode {
            frame: crate::NULL_ID,
            parent: 0,
            self_weight: 0,
            total_weight: 0,
        }];
        // Indexes of the nodes on the previous path, from the root downwards.
        let mut open = vec![0];
        for path in &paths {
            let common = open[1..]
                .iter()
                .zip(path.steps())
                .take_while(|(node, frame)| nodes[**node].frame == *frame)
                .count();
            open.truncate(common + 1);
            for frame in path.steps().skip(common) {
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
        CallTree { nodes }
    }
}
