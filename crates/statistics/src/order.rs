//! Effect of the order within pairs of runs.
//!
//! The run that begins second may find a warmer machine or fuller caches. If both sides begin equally often,
//! such an effect only widens the confidence interval of the change. Otherwise, the effect looks like a part
//! of the change.

use serde::Serialize;

use crate::{CONFIDENCE, Incomparable, Interval, Scale, unpaired};

/// Effect of the order of the two runs within a pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Number of pairs in which the run before the change began first.
    pub before_began: usize,
    /// Number of pairs in which the run after the change began first.
    pub after_began: usize,
    /// Scale of the effect `second`.
    pub scale: Scale,
    /// Change from the first run to the second run of a pair. It does not matter which of them was before the
    /// change.
    pub second: Interval,
    /// Probability that chance alone makes an effect that is at least as large.
    pub p: f64,
}

/// Compares two groups of pairs. In the first group, the run before the change began first. In the second
/// group, the run after the change began first. `before_began` has one entry for each pair.
///
/// # Errors
/// Returns an error if one side began first in too few pairs, if the numbers of runs differ, or if a number
/// is not finite.
pub fn order(before: &[f64], after: &[f64], before_began: &[bool]) -> Result<Order, Incomparable> {
    if before.len() != after.len() || before.len() != before_began.len() {
        return Err(Incomparable::Unequal {
            before: before.len(),
            after: after.len(),
        });
    }
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    let scale = Scale::of(before, after);
    let pairs = scale.apply(after).into_iter().zip(scale.apply(before));
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for ((after, before), before_began) in pairs.zip(before_began) {
        if *before_began {
            forward.push(after - before)
        } else {
            backward.push(after - before)
        }
    }
    // In one group, the difference of a pair is the change plus the effect of the order. In the other group, it is the
    // change minus the effect. The shift between both groups is therefore twice the effect.
    let it = unpaired::unpaired(&backward, &forward, CONFIDENCE)?;
    Ok(Order {
        before_began: forward.len(),
        after_began: backward.len(),
        scale,
        second: scale.undo(it.shift.map(|twice| twice / 2.0)),
        p: it.p,
    })
}
