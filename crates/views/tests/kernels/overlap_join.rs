//! Overlap joins, against all pairs.

use testdata::Rng;
use views::{Intervals, NULL, Overlap, OverlapJoin, Rows};

use crate::columns::{chunks, ends, ids, times};

fn is_interval(start: i64, end: i64) -> bool {
    start != NULL && end != NULL && start <= end
}

#[test]
fn all_pairs_that_overlap_are_found() {
    let mut rng = Rng(71);
    for _ in 0..400 {
        let bound = 1 + rng.below(3) as u32;
        let mut side = |len: usize| {
            let starts = times(&mut rng, len, 400);
            (
                starts.clone(),
                ends(&mut rng, &starts),
                ids(&mut rng, len, bound),
            )
        };
        let (starts, ends, keys) = side(40);
        let (other_starts, other_ends, other_keys) = side(70);
        let first = Intervals {
            starts: &starts,
            ends: &ends,
            keys: &keys,
        };
        let mut join = OverlapJoin::new(first, bound).expect("few keys");
        let mut found = Vec::new();
        for chunk in chunks(&mut rng, other_starts.len()) {
            let second = Intervals {
                starts: &other_starts[chunk.clone()],
                ends: &other_ends[chunk.clone()],
                keys: &other_keys[chunk.clone()],
            };
            let rows = Rows::of(0..chunk.len());
            assert_eq!(join.add(second, &rows, |pair| found.push(pair)), Ok(()));
        }
        join.finish(|pair| found.push(pair));
        found.sort_unstable();

        let (mut expected, mut skipped) = (Vec::new(), 0);
        for row in 0..starts.len() {
            skipped += u64::from(!is_interval(starts[row], ends[row]));
            for other in 0..other_starts.len() {
                let (start, end) = (other_starts[other], other_ends[other]);
                let both = is_interval(starts[row], ends[row]) && is_interval(start, end);
                if both && keys[row] == other_keys[other] && keys[row] < bound {
                    let shared = |time: &i64| (start..end).contains(time);
                    let span = (starts[row]..ends[row]).filter(shared).count() as i64;
                    if span > 0 {
                        expected.push(Overlap {
                            first: row as u64,
                            second: other as u64,
                            span,
                        });
                    }
                }
            }
        }
        let others = other_starts.iter().zip(&other_ends);
        skipped += others
            .filter(|(start, end)| !is_interval(**start, **end))
            .count() as u64;
        assert_eq!(found, expected);
        assert_eq!(join.skipped(), skipped);
    }
}

#[test]
fn unsorted_and_extreme_intervals_do_no_harm() {
    let mut rng = Rng(72);
    let mut wild = || -> Vec<i64> { (0..80).map(|_| rng.bits() as i64).collect() };
    let (starts, ends) = (wild(), wild());
    let keys: Vec<u32> = (0..80).map(|row| row % 3).collect();
    let intervals = Intervals {
        starts: &starts,
        ends: &ends,
        keys: &keys,
    };
    let mut join = OverlapJoin::new(intervals, 2).expect("few keys");
    let mut check = |pair: Overlap| {
        let (a, b) = (pair.first as usize, pair.second as usize);
        let shared = (ends[a].min(ends[b])).saturating_sub(starts[a].max(starts[b]));
        assert!(pair.span > 0 && pair.span == shared && keys[a] == keys[b]);
    };
    assert_eq!(join.add(intervals, &Rows::of(0..80), &mut check), Ok(()));
    join.finish(check);
}
