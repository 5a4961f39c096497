//! Division of a change of time into two parts: more or fewer events, and longer or shorter events.

use serde::Serialize;

use crate::Sum;

/// Two parts of the change of a time: `count_ns + mean_ns` is the change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parts {
    /// Part of the change that the change of the count explains, in nanoseconds.
    pub count_ns: f64,
    /// Part of the change that the change of the mean time explains, in nanoseconds.
    pub mean_ns: f64,
}

/// Divides a change of time into the part of the count and the part of the mean time. The size of a part depends on the
/// order in which count and mean time are changed, so each part is the mean over both orders (Shapley value). If one
/// side has no events, it has no mean time, and the whole change is part of the count.
pub fn decompose(before: Sum, after: Sum) -> Parts {
    let whole = after.ns - before.ns;
    match (before.mean_ns(), after.mean_ns()) {
        (Some(old), Some(new)) => {
            let count_ns = (after.count - before.count) * f64::midpoint(old, new);
            Parts {
                count_ns,
                mean_ns: whole - count_ns,
            }
        }
        _ => Parts {
            count_ns: whole,
            mean_ns: 0.0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the parts with the published parts for three recordings of a DPC flood. Each recording has a
    /// length of 10 s.
    #[test]
    fn fewer_but_longer_dpcs_are_told_apart() {
        let sum = |count, seconds: f64| Sum {
            count,
            ns: seconds * 1e9,
        };
        let teaming = sum(163_230.0, 36.8);
        let no_teaming = sum(55_000.0, 37.7);
        let no_ids = sum(127_000.0, 11.0);
        for (before, after, count, mean) in [
            (teaming, no_teaming, -49.29, 50.19),
            (teaming, no_ids, -5.65, -20.15),
            (no_teaming, no_ids, 27.79, -54.49),
        ] {
            let parts = decompose(before, after);
            assert!((parts.count_ns / 1e9 - count).abs() < 0.006, "{parts:?}");
            assert!((parts.mean_ns / 1e9 - mean).abs() < 0.006, "{parts:?}");
        }
    }

    #[test]
    fn a_row_of_one_side_is_all_count() {
        let new = Sum {
            count: 3.0,
            ns: 9.0,
        };
        let parts = decompose(Sum::default(), new);
        assert_eq!((parts.count_ns, parts.mean_ns), (9.0, 0.0));
        let gone = decompose(new, Sum::default());
        assert_eq!((gone.count_ns, gone.mean_ns), (-9.0, 0.0));
    }
}
