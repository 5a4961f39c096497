//! As-of joins, against a search through all rows for each probe.

use testdata::Rng;
use views::{AsOfJoin, IdSet, NO_ROW, NULL, NULL_ID, Rows};

use crate::columns::{chunks, ids, times};

#[test]
fn each_probe_finds_the_last_row_of_its_key() {
    let mut rng = Rng(61);
    for _ in 0..500 {
        let bound = 1 + rng.below(4) as u32;
        let (probes, len) = (rng.below(60), rng.below(90));
        // Few times, so that many are the same.
        let end = 1 + rng.below(60);
        let (probe_times, probe_keys) =
            (times(&mut rng, probes, end), ids(&mut rng, probes, bound));
        let (row_times, row_keys) = (times(&mut rng, len, end), ids(&mut rng, len, bound));
        let filtered = rng.below(3) == 0;
        let only = IdSet::new(bound).with([0]);

        let mut join = AsOfJoin::new(&probe_times, &probe_keys, bound).expect("few keys");
        for chunk in chunks(&mut rng, len) {
            let keys = &row_keys[chunk.clone()];
            let mut rows = Rows::of(0..chunk.len());
            if filtered {
                rows = rows.keep(keys, &only);
            }
            assert_eq!(join.add(&row_times[chunk], keys, &rows), Ok(()));
        }

        let expected: Vec<u64> = (0..probes)
            .map(|probe| {
                let (time, key) = (probe_times[probe], probe_keys[probe]);
                let fits = |row: &usize| {
                    row_keys[*row] == key
                        && key < bound
                        && (NULL < row_times[*row] && row_times[*row] <= time)
                        && (!filtered || key == 0)
                };
                (0..len).rfind(fits).map_or(NO_ROW, |row| row as u64)
            })
            .collect();
        assert_eq!(join.finish(), expected);
    }
}

#[test]
fn rows_at_one_time_in_two_chunks_are_all_seen() {
    let mut join = AsOfJoin::new(&[5, 5], &[0, 1], 2).expect("few keys");
    assert_eq!(join.add(&[4, 5], &[1, 0], &Rows::of(0..2)), Ok(()));
    assert_eq!(join.add(&[5, 6], &[0, 0], &Rows::of(0..2)), Ok(()));
    assert_eq!(join.finish(), [2, 0]);
}

#[test]
fn unsorted_columns_give_an_answer_for_each_probe() {
    let mut rng = Rng(62);
    for _ in 0..100 {
        let wild: Vec<i64> = (0..50).map(|_| rng.bits() as i64).collect();
        let keys: Vec<u32> = (0..50).map(|_| rng.bits() as u32 % 3).collect();
        let mut join = AsOfJoin::new(&wild, &keys, 2).expect("few keys");
        let rows: Vec<i64> = wild.iter().rev().copied().collect();
        assert_eq!(join.add(&rows, &keys, &Rows::of(0..50)), Ok(()));
        let found = join.finish();
        assert_eq!(found.len(), 50);
        assert!(found.iter().all(|row| *row < 50 || *row == NO_ROW));
    }
    let none = AsOfJoin::new(&[NULL, 1], &[0, NULL_ID], 1).expect("few keys");
    assert_eq!(none.finish(), [NO_ROW, NO_ROW]);
}
