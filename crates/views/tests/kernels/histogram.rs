//! Tests of histograms. The expected counts come from a check of all values against the bounds of
//! each class.

use testdata::Rng;
use views::{Bounds, Histogram, NULL, Rows};

use crate::columns::{chunks, ids, known, values};

#[test]
fn values_are_counted_by_id_and_class() {
    let mut rng = Rng(51);
    for _ in 0..200 {
        let (len, bound) = (rng.below(150), rng.below(5) as u32 + 1);
        let (ids, values) = (ids(&mut rng, len, bound), values(&mut rng, len, 90));
        let upper: Vec<i64> = (0..rng.below(6)).map(|_| rng.below(100) as i64).collect();
        let bounds = Bounds::new(upper);
        let mut halves = [0, 1].map(|_| Histogram::new(bounds.clone(), bound).expect("few cells"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            assert_eq!(
                halves[at % 2].add(&ids, &values, &Rows::from_range(chunk)),
                Ok(())
            );
        }
        let [mut histogram, other] = halves;
        histogram.merge(&other);

        let mut edges = vec![NULL];
        edges.extend(bounds.upper());
        edges.push(i64::MAX);
        let mut expected = Vec::new();
        for id in (0..bound).map(Some).chain([None]) {
            let mine = ids
                .iter()
                .zip(&values)
                .filter(|(other, _)| known(**other, bound) == id);
            let mine: Vec<i64> = mine.map(|(_, value)| *value).collect();
            let counts: Vec<u64> = edges
                .windows(2)
                .map(|edge| {
                    let held = mine
                        .iter()
                        .filter(|value| edge[0] < **value && **value <= edge[1]);
                    held.count() as u64
                })
                .collect();
            if counts.iter().sum::<u64>() > 0 {
                expected.push((id, counts));
            }
        }
        assert_eq!(histogram.finish(), expected);
    }
}
