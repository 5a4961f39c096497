//! Tests of pivots. The expected groups come from maps of row lists.

use std::collections::BTreeMap;

use testdata::Rng;
use views::{Aggregate, Group, NULL, Number, Pivot, PivotSpec, Rows, TooLarge};

use crate::columns::{chunks, ids, known, values};

/// Computes an aggregate of a group's rows by its definition.
fn expected(aggregate: Aggregate, rows: &[usize], measures: &[Vec<i64>]) -> Option<Number> {
    let sorted = |measure: usize| {
        let all = rows.iter().map(|row| measures[measure][*row]);
        let mut known: Vec<i64> = all.filter(|value| *value != NULL).collect();
        known.sort_unstable();
        known
    };
    let some = |measure: usize| Some(sorted(measure)).filter(|values| !values.is_empty());
    // A 0 would hide that most values are unknown.
    let shown = |m: usize, value: i64| {
        (value != 0 || sorted(m).len() * 2 >= rows.len()).then_some(Number::Integer(value))
    };
    match aggregate {
        Aggregate::Rows => Some(Number::Integer(rows.len() as i64)),
        Aggregate::Count(m) => Some(Number::Integer(sorted(m).len() as i64)),
        Aggregate::Sum(m) => some(m).and_then(|values| shown(m, values.iter().sum())),
        Aggregate::Mean(m) => some(m)
            .map(|values| Number::Real(values.iter().sum::<i64>() as f64 / values.len() as f64)),
        Aggregate::Min(m) => some(m).map(|values| Number::Integer(values[0])),
        Aggregate::Max(m) => some(m).and_then(|values| shown(m, values[values.len() - 1])),
        Aggregate::Percentile(m, share) => some(m).map(|values| {
            let reached = |at: &usize| (at + 1) as f64 >= share * values.len() as f64;
            Number::Integer(
                values[(0..values.len())
                    .find(reached)
                    .expect("the share is at most 1")],
            )
        }),
    }
}

fn aggregates(measure: usize) -> Vec<Aggregate> {
    let share = [0.5, 0.9, 0.95, 0.99].map(|share| Aggregate::Percentile(measure, share));
    let mut all = vec![
        Aggregate::Rows,
        Aggregate::Count(measure),
        Aggregate::Sum(measure),
        Aggregate::Mean(measure),
        Aggregate::Min(measure),
        Aggregate::Max(measure),
    ];
    all.extend(share);
    all
}

#[test]
fn groups_under_a_path_have_the_aggregates_of_their_rows() {
    let mut rng = Rng(21);
    for _ in 0..150 {
        let len = rng.below(200);
        let bounds = vec![1 + rng.below(3) as u32, 1 + rng.below(3) as u32, 6];
        let keys: Vec<Vec<u32>> = bounds.iter().map(|b| ids(&mut rng, len, *b)).collect();
        let measures = [values(&mut rng, len, 50), values(&mut rng, len, 100_000)];
        let path: Vec<Option<u32>> = bounds[..rng.below(3)]
            .iter()
            .map(|bound| known(rng.below(*bound as usize + 1) as u32, *bound))
            .collect();
        let spec = PivotSpec {
            bounds: bounds.clone(),
            path: path.clone(),
            measures: 2,
            percentiles: true,
        };
        let mut halves = [0, 1].map(|_| Pivot::new(spec.clone()).expect("few groups"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            let keys: Vec<&[u32]> = keys.iter().map(|key| &key[chunk.clone()]).collect();
            let measures = [0, 1].map(|m: usize| &measures[m][chunk.clone()]);
            let rows = Rows::from_range(0..chunk.len());
            assert_eq!(halves[at % 2].add(&keys, &measures, &rows), Ok(()));
        }
        let [mut pivot, other] = halves;
        pivot.merge(&other);

        let level = path.len();
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let opened =
            |row: &usize| (0..level).all(|at| known(keys[at][*row], bounds[at]) == path[at]);
        for row in (0..len).filter(opened) {
            let id = keys[level][row].min(bounds[level]);
            groups.entry(id).or_default().push(row);
        }
        let level_groups = pivot.finish();
        let ids: Vec<Option<u32>> = level_groups.groups.iter().map(|group| group.id).collect();
        let expected_ids = groups.keys().map(|id| known(*id, bounds[level]));
        assert_eq!(ids, expected_ids.collect::<Vec<_>>());
        for (group, rows) in level_groups.groups.iter().zip(groups.values()) {
            for aggregate in [aggregates(0), aggregates(1)].concat() {
                let want = expected(aggregate, rows, &measures);
                assert_eq!(group.aggregate(aggregate), want, "{aggregate:?}");
            }
        }
        let all: Vec<usize> = groups.values().flatten().copied().collect();
        assert_eq!(level_groups.rows, all.len() as u64);
        let values = all.iter().map(|row| measures[1][*row]);
        let known: Vec<i64> = values.filter(|value| *value != NULL).collect();
        let total = (!known.is_empty()).then(|| known.iter().sum());
        assert_eq!(level_groups.totals[1].sum(), total);
    }
}

#[test]
fn aggregates_that_were_not_requested_are_absent() {
    let spec = PivotSpec {
        bounds: vec![1],
        path: vec![],
        measures: 1,
        percentiles: false,
    };
    let mut pivot = Pivot::new(spec).expect("few groups");
    assert_eq!(pivot.add(&[&[0]], &[&[9]], &Rows::from_range(0..1)), Ok(()));
    let level = pivot.finish();
    let group: &Group = &level.groups[0];
    assert_eq!(group.aggregate(Aggregate::Percentile(0, 0.5)), None);
    assert_eq!(group.aggregate(Aggregate::Sum(3)), None);
    assert_eq!(group.aggregate(Aggregate::Max(0)), Some(Number::Integer(9)));
}

#[test]
fn too_many_groups_are_refused() {
    let spec = PivotSpec {
        bounds: vec![u32::MAX],
        path: vec![],
        measures: 0,
        percentiles: false,
    };
    let cells = 1 << 32;
    assert_eq!(Pivot::new(spec).map(|_| ()), Err(TooLarge { cells }));
}
