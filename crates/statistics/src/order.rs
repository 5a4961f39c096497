//! Effect of the order within pairs of runs.
//!
//! The run that begins second may find a warmer machine or fuller caches. If both sides begin equally often, such
//! an effect only widens the interval of the change; otherwise it looks like a part of the change.

use serde::Serialize;

use crate::{CONFIDENCE, Incomparable, Interval, Scale, unpaired};

/// Effect of the order within pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Number of pairs whose run before the change began.
    pub before_began: usize,
    /// Number of pairs whose run after the change began.
    pub after_began: usize,
    /// Unit of the effect.
    pub scale: Scale,
    /// Change from the run that began to the other run of a pair, whatever their sides are.
    pub second: Interval,
    /// Probability of such an effect by chance.
    pub p: f64,
}

/// Compares the changes of pairs whose run before the change began with those of the other pairs. `before_began` has
/// an entry per pair.
///
/// # Errors
/// Returns an error if a side began too rarely, if the numbers of runs differ, or if a number is not finite.
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
        match before_began {
            true => forward.push(after - before),
            false => backward.push(after - before),
        }
    }
    // A pair has the change plus the effect of the order, or the change minus it.
    let it = unpaired::unpaired(&backward, &forward, CONFIDENCE)?;
    Ok(Order {
        before_began: forward.len(),
        after_began: backward.len(),
        scale,
        second: scale.undo(it.shift.map(|twice| twice / 2.0)),
        p: it.p,
    })
}
