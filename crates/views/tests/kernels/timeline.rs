//! Tests of timelines. The expected values come from a computation for each nanosecond.

use std::collections::HashMap;

use testdata::Rng;
use views::{
    Cancelled, IdSet, Intervals, Lane, Lanes, NULL, NULL_ID, Rows, Series, Summary, TimeBuckets,
    TimeRange, Timeline, TooLarge, rows_within,
};

use crate::columns::{chunks, ends, ids, known, times, values};

/// Values by lane and bucket.
type Cells = HashMap<(Lane, usize), Vec<i64>>;

fn lane(id: Option<u32>) -> Lane {
    id.map_or(Lane::Unknown, Lane::Id)
}

/// Returns the count, sum, minimum and maximum.
fn numbers(summary: &Summary) -> (u64, Option<i64>, Option<i64>, Option<i64>) {
    (summary.count(), summary.sum(), summary.min(), summary.max())
}

/// Checks the order of the series and their values against the definition.
fn assert_series(series: &[Series], cells: &Cells, buckets: TimeBuckets) {
    let mut sums: HashMap<u32, i64> = HashMap::new();
    for ((lane, _), values) in cells {
        if let Lane::Id(id) = lane {
            *sums.entry(*id).or_default() += values.iter().sum::<i64>();
        }
    }
    let mut ranked: Vec<u32> = sums.keys().copied().collect();
    ranked.sort_by_key(|id| (-sums[id], *id));
    let mut expected: Vec<Lane> = ranked.into_iter().map(Lane::Id).collect();
    if cells.keys().any(|(lane, _)| *lane == Lane::Unknown) {
        expected.push(Lane::Unknown);
    }
    let lanes: Vec<Lane> = series.iter().map(|series| series.lane).collect();
    assert_eq!(lanes, expected);
    for series in series {
        let mut all = Vec::new();
        assert_eq!(series.buckets.len(), buckets.len());
        for (index, bucket) in series.buckets.iter().enumerate() {
            let here = cells
                .iter()
                .filter(|((lane, at), _)| *at == index && *lane == series.lane);
            let values: Vec<i64> = here.flat_map(|(_, values)| values.clone()).collect();
            assert_eq!(numbers(bucket), expected_numbers(&values));
            all.extend(values);
        }
        assert_eq!(numbers(&series.total), expected_numbers(&all));
    }
}

fn expected_numbers(values: &[i64]) -> (u64, Option<i64>, Option<i64>, Option<i64>) {
    let known = !values.is_empty();
    (
        values.len() as u64,
        known.then(|| values.iter().sum()),
        values.iter().min().copied(),
        values.iter().max().copied(),
    )
}

/// Returns buckets with a random range and a random number. The number rarely divides the length of the
/// range.
fn random_buckets(rng: &mut Rng) -> TimeBuckets {
    let start = rng.below(100) as i64 - 20;
    let range = TimeRange::new(start, start + rng.below(250) as i64);
    TimeBuckets::new(range, 1 + rng.below(30))
}

#[test]
fn values_are_added_to_their_bucket_and_lane() {
    let mut rng = Rng(1);
    for _ in 0..300 {
        let (len, bound) = (rng.below(120), 1 + rng.below(6) as u32);
        let (times, ids) = (times(&mut rng, len, 250), ids(&mut rng, len, bound));
        let values = values(&mut rng, len, 1000);
        let buckets = random_buckets(&mut rng);
        let only = IdSet::new(bound).with([0, 2, NULL_ID]);
        let filtered = rng.below(2) == 1;

        let mut halves =
            [0, 1].map(|_| Timeline::new(buckets, Lanes::every(bound)).expect("few cells"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            let (times, ids) = (&times[chunk.clone()], &ids[chunk.clone()]);
            let mut rows = Rows::from_range(rows_within(times, buckets.range()));
            if filtered {
                rows = rows.keep(ids, &only);
            }
            let half = &mut halves[at % 2];
            assert_eq!(half.add_values(times, ids, &values[chunk], &rows), Ok(()));
        }
        let [mut timeline, other] = halves;
        timeline.merge(&other);

        let mut cells = Cells::new();
        for row in 0..len {
            let id = known(ids[row], bound);
            let kept = !filtered || matches!(id, None | Some(0 | 2));
            let bucket = (0..buckets.len()).find(|at| buckets.bucket(*at).contains(times[row]));
            if let Some(bucket) = bucket
                && kept
                && values[row] != NULL
            {
                cells
                    .entry((lane(id), bucket))
                    .or_default()
                    .push(values[row]);
            }
        }
        assert_series(&timeline.finish(), &cells, buckets);
    }
}

#[test]
fn intervals_are_spread_over_the_buckets_they_cover() {
    let mut rng = Rng(2);
    for _ in 0..400 {
        let (len, bound) = (rng.below(60), 1 + rng.below(4) as u32);
        let (starts, keys) = (times(&mut rng, len, 250), ids(&mut rng, len, bound));
        let ends = ends(&mut rng, &starts);
        let buckets = random_buckets(&mut rng);

        let mut halves =
            [0, 1].map(|_| Timeline::new(buckets, Lanes::every(bound)).expect("few cells"));
        for (at, chunk) in chunks(&mut rng, len).into_iter().enumerate() {
            let intervals = Intervals {
                starts: &starts[chunk.clone()],
                ends: &ends[chunk.clone()],
                keys: &keys[chunk.clone()],
            };
            let rows = Rows::from_range(0..chunk.len());
            assert_eq!(halves[at % 2].add_intervals(intervals, &rows), Ok(()));
        }
        let [mut timeline, other] = halves;
        timeline.merge(&other);

        let mut cells = Cells::new();
        for row in 0..len {
            let (start, end) = (starts[row], ends[row]);
            if start == NULL || end == NULL || end < start {
                continue;
            }
            for bucket in 0..buckets.len() {
                let held = |time: &i64| buckets.bucket(bucket).contains(*time);
                let covered = (start..end).filter(held).count() as i64;
                if covered > 0 || start == end && held(&start) {
                    let cell = (lane(known(keys[row], bound)), bucket);
                    cells.entry(cell).or_default().push(covered);
                }
            }
        }
        assert_series(&timeline.finish(), &cells, buckets);
    }
}

#[test]
fn chosen_ids_have_lanes_and_the_others_share_one() {
    let buckets = TimeBuckets::new(TimeRange::new(0, 10), 2);
    let mut timeline = Timeline::new(buckets, Lanes::from_ids(&[7, 900], 1000)).expect("few cells");
    let ids = [7, 5, 900, 6, NULL_ID, 7];
    let (times, values) = ([0, 1, 2, 6, 7, 9], [1, 20, 300, 40, 5, 6]);
    assert_eq!(
        timeline.add_values(&times, &ids, &values, &Rows::from_range(0..6)),
        Ok(())
    );
    let sums: Vec<_> = timeline
        .finish()
        .iter()
        .map(|series| (series.lane, [0, 1].map(|at| series.buckets[at].sum())))
        .collect();
    let expected = [
        (Lane::Id(900), [Some(300), None]),
        (Lane::Id(7), [Some(1), Some(6)]),
        (Lane::Other, [Some(20), Some(40)]),
        (Lane::Unknown, [None, Some(5)]),
    ];
    assert_eq!(sums, expected);
}

#[test]
fn hostile_intervals_do_no_harm() {
    let starts = [NULL, NULL + 1, 0, i64::MAX, 5, i64::MAX - 1];
    let ends = [0, i64::MAX, NULL, i64::MAX, -5, i64::MAX];
    let intervals = Intervals {
        starts: &starts,
        ends: &ends,
        keys: &[0, 1, NULL_ID, u32::MAX - 1, 0, 0],
    };
    let buckets = TimeBuckets::new(TimeRange::new(i64::MIN, i64::MAX), 3);
    let mut timeline = Timeline::new(buckets, Lanes::every(2)).expect("few cells");
    assert_eq!(
        timeline.add_intervals(intervals, &Rows::from_range(0..6)),
        Ok(())
    );
    let series = timeline.finish();
    // Only two of the intervals count. One of them lasts from the earliest known time to the maximum of `i64`, so it
    // is longer than the maximum of a sum. The other lasts 1 ns. Three intervals are invalid, and one starts at the
    // end of the range.
    let sums: Vec<_> = series.iter().map(|s| (s.lane, s.total.sum())).collect();
    assert_eq!(
        sums,
        [(Lane::Id(1), Some(i64::MAX)), (Lane::Id(0), Some(1))]
    );
    assert!(series[0].buckets.iter().all(|bucket| bucket.count() == 1));
}

#[test]
fn an_empty_timeline_has_no_series_and_a_huge_one_is_refused() {
    let buckets = TimeBuckets::new(TimeRange::new(5, 5), 10);
    let mut timeline = Timeline::new(buckets, Lanes::every(3)).expect("no cells");
    assert_eq!(
        timeline.add_values(&[5], &[0], &[1], &Rows::from_range(0..1)),
        Ok(())
    );
    assert_eq!(timeline.finish(), []);
    let buckets = TimeBuckets::new(TimeRange::new(0, 1_000_000), 10_000);
    let refused = Timeline::new(buckets, Lanes::every(999)).map(|_| ());
    assert_eq!(refused, Err(TooLarge { cells: 10_000_000 }));
}

#[test]
fn a_cancelled_pass_returns_an_error() {
    let flag = std::sync::atomic::AtomicBool::new(true);
    let buckets = TimeBuckets::new(TimeRange::new(0, 10), 2);
    let mut timeline = Timeline::new(buckets, Lanes::every(1)).expect("few cells");
    let rows = Rows::from_range(0..1).until(&flag);
    assert_eq!(timeline.add_values(&[1], &[0], &[1], &rows), Err(Cancelled));
}
