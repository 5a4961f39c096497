//! Functions for time ranges.

use std::ops::Range;

/// Joins ranges that overlap or touch, and sorts them.
pub(crate) fn union(mut ranges: Vec<Range<i64>>) -> Vec<Range<i64>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<i64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Adds a range to sorted, disjoint ranges. Joins it with the ranges that it overlaps or touches.
pub(crate) fn insert(ranges: &mut Vec<Range<i64>>, new: Range<i64>) {
    let from = ranges.partition_point(|range| range.end < new.start);
    let to = ranges.partition_point(|range| range.start <= new.end);
    let joined = ranges[from..to].iter().fold(new, |joined, range| {
        joined.start.min(range.start)..joined.end.max(range.end)
    });
    ranges.splice(from..to, [joined]);
}

/// Returns the intersection of two ranges; `None` if it is empty.
pub(crate) fn overlap(one: &Range<i64>, other: &Range<i64>) -> Option<Range<i64>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (!both.is_empty()).then_some(both)
}

/// Returns the time between the starts of ranges that come in regular intervals, in nanoseconds: all intervals differ from
/// the median by at most a tenth. Returns `None` if there are fewer than three intervals. The ranges must be in order.
pub(crate) fn period_ns(ranges: &[Range<i64>]) -> Option<i64> {
    let pairs = ranges.windows(2);
    let mut apart: Vec<i64> = pairs
        .map(|pair| pair[1].start.saturating_sub(pair[0].start))
        .collect();
    apart.sort_unstable();
    let median = *apart.get(apart.len() / 2).filter(|_| apart.len() >= 3)?;
    let is_near = |ns: &i64| (ns - median).abs() <= median / 10;
    (median > 0 && apart.iter().all(is_near)).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_or_touch_become_one() {
        assert_eq!(union(vec![5..7, 1..2, 2..3, 6..9]), [1..3, 5..9]);
        assert_eq!(union(vec![1..9, 2..3, 11..12]), [1..9, 11..12]);
        assert_eq!(union(Vec::new()), []);
    }

    #[test]
    fn ranges_added_one_by_one_in_any_order_give_their_union() {
        let mut rng = testdata::Rng(7);
        for _ in 0..200 {
            let all: Vec<Range<i64>> = (0..20)
                .map(|_| {
                    let start = rng.below(100) as i64;
                    start..start + 1 + rng.below(9) as i64
                })
                .collect();
            let mut one_by_one = Vec::new();
            for range in &all {
                insert(&mut one_by_one, range.clone());
            }
            assert_eq!(one_by_one, union(all));
        }
    }

    #[test]
    fn ranges_that_touch_have_nothing_in_common() {
        assert_eq!(overlap(&(1..5), &(3..9)), Some(3..5));
        assert_eq!(overlap(&(1..9), &(3..5)), Some(3..5));
        assert_eq!(overlap(&(1..3), &(3..5)), None);
        assert_eq!(overlap(&(1..1), &(0..5)), None);
    }
}
