//! Random columns for tests.

use std::ops::Range;

use testdata::Rng;
use views::{NULL, NULL_ID};

/// Reciprocal of the share of unknown values: on average, one of 12 values is unknown.
const UNKNOWN: usize = 12;

/// Returns sorted times below `end`. Unknown times come first, and some times are below 0.
pub(crate) fn times(rng: &mut Rng, len: usize, end: usize) -> Vec<i64> {
    let mut times = values(rng, len, end);
    times.sort_unstable();
    times
}

/// Returns values from -5 to below `end`. Some values are unknown.
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

/// Returns ids below `bound`. Some ids are unknown, and some are at or above the bound.
pub(crate) fn ids(rng: &mut Rng, len: usize, bound: u32) -> Vec<u32> {
    (0..len)
        .map(|_| match rng.below(UNKNOWN) {
            0 => [NULL_ID, bound, bound + 7][rng.below(3)],
            _ => rng.below(bound as usize) as u32,
        })
        .collect()
}

/// Returns an id as the kernels interpret it: `None` if it is unknown or not below `bound`.
pub(crate) fn known(id: u32, bound: u32) -> Option<u32> {
    (id < bound).then_some(id)
}

/// Returns the ends of intervals. Most intervals are short. Some are long or empty, and some ends
/// are before the start or unknown.
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

/// Splits `len` rows into chunks, some of which are empty.
pub(crate) fn chunks(rng: &mut Rng, len: usize) -> Vec<Range<usize>> {
    let mut edges: Vec<usize> = (0..rng.below(4)).map(|_| rng.below(len + 1)).collect();
    edges.extend([0, len]);
    edges.sort_unstable();
    edges.windows(2).map(|edge| edge[0]..edge[1]).collect()
}
