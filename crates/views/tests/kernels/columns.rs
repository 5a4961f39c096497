//! Random columns, and ways to hand them over.

use std::ops::Range;

use testdata::Rng;
use views::{NULL, NULL_ID};

/// Of every so many values one is unknown.
const UNKNOWN: usize = 12;

/// Times below `end`, some before 0, sorted, the unknown first.
pub(crate) fn times(rng: &mut Rng, len: usize, end: usize) -> Vec<i64> {
    let mut times = values(rng, len, end);
    times.sort_unstable();
    times
}

/// From -5 to below `end`, some unknown.
pub(crate) fn values(rng: &mut Rng, len: usize, end: usize) -> Vec<i64> {
    let value = |rng: &mut Rng| rng.below(end + 5) as i64 - 5;
    (0..len)
        .map(|_| {
            if rng.below(UNKNOWN) == 0 {
                NULL
            } else {
                value(rng)
            }
        })
        .collect()
}

/// Ids below `bound`, some unknown and some beyond.
pub(crate) fn ids(rng: &mut Rng, len: usize, bound: u32) -> Vec<u32> {
    (0..len)
        .map(|_| match rng.below(UNKNOWN) {
            0 => [NULL_ID, bound, bound + 7][rng.below(3)],
            _ => rng.below(bound as usize) as u32,
        })
        .collect()
}

/// An id as the kernels take it.
pub(crate) fn known(id: u32, bound: u32) -> Option<u32> {
    (id < bound).then_some(id)
}

/// Ends of intervals: mostly short, some long, some empty, some before their start, some unknown.
pub(crate) fn ends(rng: &mut Rng, starts: &[i64]) -> Vec<i64> {
    let mut end = |start: &i64| match rng.below(UNKNOWN) {
        0 => NULL,
        1 => start.saturating_sub(1 + rng.below(9) as i64),
        2 => *start,
        3 => start.saturating_add(rng.below(300) as i64),
        _ => start.saturating_add(rng.below(20) as i64),
    };
    starts.iter().map(&mut end).collect()
}

/// Chunks of so many rows, some empty.
pub(crate) fn chunks(rng: &mut Rng, len: usize) -> Vec<Range<usize>> {
    let mut edges: Vec<usize> = (0..rng.below(4)).map(|_| rng.below(len + 1)).collect();
    edges.extend([0, len]);
    edges.sort_unstable();
    edges.windows(2).map(|edge| edge[0]..edge[1]).collect()
}
