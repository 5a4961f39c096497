//! Distance of two distributions.

/// Returns the Wasserstein distance of order 1: the mean distance by which the values of one distribution move
/// to become those of the other. Each value has a weight and is at least as great as the one before it. Returns
/// `None` if a side has no weight.
pub fn wasserstein(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<f64> {
    let whole = |side: &[(f64, f64)]| side.iter().map(|(_, weight)| weight).sum::<f64>();
    let wholes = [whole(before), whole(after)];
    if !wholes.iter().all(|whole| *whole > 0.0) {
        return None;
    }
    let mut sides = [before.iter().peekable(), after.iter().peekable()];
    // Shares of both sides up to the last value.
    let mut reached = [0.0; 2];
    let (mut last, mut distance) = (None, 0.0);
    loop {
        let next = sides
            .each_mut()
            .map(|side| side.peek().map(|(value, _)| *value));
        let Some(value) = next.into_iter().flatten().reduce(f64::min) else {
            return Some(distance);
        };
        let [old, new] = reached;
        distance += last.map_or(0.0, |last: f64| (value - last) * f64::abs(old - new));
        for ((side, reached), whole) in sides.iter_mut().zip(&mut reached).zip(wholes) {
            while let Some((_, weight)) = side.next_if(|(own, _)| *own <= value) {
                *reached += weight / whole;
            }
        }
        last = Some(value);
    }
}
