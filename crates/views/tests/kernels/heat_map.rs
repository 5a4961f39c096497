//! Tests of heat maps. The expected counts come from a check of all rows against the edges of each
//! cell.

use testdata::Rng;
use views::{Bounds, HeatMap, NULL, Rows, TimeBuckets, TimeRange};

use crate::columns::{chunks, times, values};

#[test]
fn rows_are_counted_in_the_cell_whose_edges_contain_them() {
    let mut rng = Rng(41);
    for _ in 0..200 {
        let len = rng.below(150);
        let (times, values) = (times(&mut rng, len, 100), values(&mut rng, len, 300));
        let range = TimeRange::new(rng.below(30) as i64, 40 + rng.below(80) as i64);
        let buckets = TimeBuckets::new(range, 1 + rng.below(9));
        let upper: Vec<i64> = (0..rng.below(9))
            .map(|_| rng.below(300) as i64 - 4)
            .collect();
        let bounds = Bounds::new(upper);
        let mut halves = [0, 1].map(|_| HeatMap::new(buckets, bounds.clone()).expect("few cells"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            assert_eq!(
                halves[at % 2].add(&times, &values, &Rows::from_range(chunk)),
                Ok(())
            );
        }
        let [mut map, other] = halves;
        map.merge(&other);

        let upper = |class: usize| bounds.upper().get(class).copied().unwrap_or(i64::MAX);
        let expected: Vec<Vec<u64>> = (0..buckets.len())
            .map(|bucket| {
                let count = |class: usize| {
                    let above = class.checked_sub(1).map_or(NULL, upper);
                    let rows = times.iter().zip(&values).filter(|(time, value)| {
                        buckets.bucket(bucket).contains(**time)
                            && (above < **value && **value <= upper(class))
                    });
                    rows.count() as u64
                };
                (0..bounds.classes()).map(count).collect()
            })
            .collect();
        assert_eq!(map.finish(), expected);
    }
}
