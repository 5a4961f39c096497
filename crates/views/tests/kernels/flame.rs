//! Tests of call trees. The expected weights come from maps of whole call paths.

use std::collections::BTreeMap;

use testdata::Rng;
use views::{CallTree, Flame, NULL, NULL_ID, Rows, Stacks};

use crate::columns::{chunks, ids, known, values};

/// Own weight and total weight of each path from the root.
type Tree = BTreeMap<Vec<u32>, (i64, i64)>;

/// Computes the expected tree of paths that start at the root.
fn expected(paths: &[(Vec<u32>, i64)]) -> Tree {
    let mut tree = Tree::from([(vec![], (0, 0))]);
    for (path, weight) in paths {
        for depth in 0..=path.len() {
            tree.entry(path[..depth].to_vec()).or_default().1 += weight;
        }
        tree.entry(path.clone()).or_default().0 += weight;
    }
    tree
}

/// Returns the weights of a tree's nodes by path. Checks that the nodes are in depth-first order.
fn by_path(tree: &CallTree) -> Tree {
    let mut paths: Vec<Vec<u32>> = vec![vec![]];
    let root = tree.nodes[0];
    assert_eq!((root.frame, root.parent), (NULL_ID, 0));
    for node in &tree.nodes[1..] {
        let mut path = paths[node.parent].clone();
        path.push(node.frame);
        paths.push(path);
    }
    assert!(paths.is_sorted(), "depth first, siblings by frame");
    let weights = tree
        .nodes
        .iter()
        .map(|node| (node.self_weight, node.total_weight));
    paths.into_iter().zip(weights).collect()
}

#[test]
fn trees_and_butterflies_have_the_weights_of_whole_paths() {
    let mut rng = Rng(31);
    for _ in 0..300 {
        let stacks = rng.below(12);
        // Only four different frames occur, so that stacks share callers and frames recur.
        let lists: Vec<Vec<u32>> = (0..stacks)
            .map(|_| (0..rng.below(7)).map(|_| rng.below(4) as u32).collect())
            .collect();
        let mut offsets = vec![0];
        let mut frames = Vec::new();
        for list in &lists {
            frames.extend(list);
            offsets.push(frames.len() as u32);
        }
        let table = Stacks {
            offsets: &offsets,
            frames: &frames,
        };
        let len = rng.below(60);
        let bound = stacks as u32;
        let stack_ids = ids(&mut rng, len, bound.max(1));
        let weights = values(&mut rng, len, 40);

        let mut halves = [0, 1].map(|_| Flame::new(bound).expect("few stacks"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            let rows = Rows::from_range(chunk);
            assert_eq!(halves[at % 2].add(&stack_ids, &weights, &rows), Ok(()));
        }
        let [mut flame, other] = halves;
        flame.merge(&other);

        let rows = stack_ids.iter().zip(&weights);
        let paths: Vec<(Vec<u32>, i64)> = rows
            .filter(|(_, weight)| **weight > 0)
            .map(|(id, weight)| {
                let list = known(*id, bound).map(|id| &lists[id as usize]);
                let root_first = list.into_iter().flatten().rev().copied();
                (root_first.collect(), *weight)
            })
            .collect();
        assert_eq!(by_path(&flame.finish(&table)), expected(&paths));

        let frame = rng.below(4) as u32;
        let (mut callers, mut callees) = (Vec::new(), Vec::new());
        for (path, weight) in &paths {
            if let Some(outermost) = path.iter().position(|other| *other == frame) {
                callees.push((path[outermost..].to_vec(), *weight));
                let up = path[..=outermost].iter().rev().copied();
                callers.push((up.collect(), *weight));
            }
        }
        let butterfly = flame.butterfly(&table, frame);
        assert_eq!(by_path(&butterfly.callers), expected(&callers));
        assert_eq!(by_path(&butterfly.callees), expected(&callees));
    }
}

#[test]
fn a_recursive_frame_counts_once() {
    // The stack is main > f > g > f, stored with the innermost frame first. The frame ids are 0 for
    // main, 1 for f and 2 for g.
    let table = Stacks {
        offsets: &[0, 4],
        frames: &[1, 2, 1, 0],
    };
    let mut flame = Flame::new(1).expect("one stack");
    assert_eq!(flame.add(&[0, 0], &[3, 4], &Rows::from_range(0..2)), Ok(()));
    let butterfly = flame.butterfly(&table, 1);
    let totals = |tree: &CallTree| -> Vec<(u32, i64)> {
        let nodes = tree.nodes.iter().skip(1);
        nodes.map(|node| (node.frame, node.total_weight)).collect()
    };
    assert_eq!(totals(&butterfly.callees), [(1, 7), (2, 7), (1, 7)]);
    assert_eq!(totals(&butterfly.callers), [(1, 7), (0, 7)]);
}

#[test]
fn damaged_stacks_have_no_frames_and_weights_saturate() {
    let table = Stacks {
        offsets: &[5, 2, 1_000, u32::MAX],
        frames: &[9, 9, 9],
    };
    for stack in [0, 1, 2, 3, NULL_ID] {
        assert!(table.frames_of(stack).is_empty());
    }
    let mut flame = Flame::new(3).expect("few stacks");
    let (stacks, weights) = ([0, 0, 7, NULL_ID], [i64::MAX, i64::MAX, i64::MAX, NULL]);
    assert_eq!(
        flame.add(&stacks, &weights, &Rows::from_range(0..4)),
        Ok(())
    );
    let tree = flame.finish(&table);
    assert_eq!(tree.nodes.len(), 1);
    assert_eq!(tree.nodes[0].total_weight, i64::MAX);
}
