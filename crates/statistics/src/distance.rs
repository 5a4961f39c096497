//! Distance of two distributions.

/// Returns the Wasserstein distance of order 1: the mean distance by which the values of one distribution must move
/// to become the values of the other. `before` and `after` contain pairs of value and weight, sorted by ascending
/// value. Returns `None` if the weights of a side have a sum of 0.
pub fn wasserstein(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<f64> {
    let whole = |side: &[(f64, f64)]| side.iter().map(|(_, weight)| weight).sum::<f64>();
    let wholes = [whole(before), whole(after)];
    if !wholes.iter().all(|whole| *whole > 0.0) {
        return None;
    }
    let mut sides = [before.iter().peekable(), after.iter().peekable()];
    // Share of the weight of each side up to the previous value.
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
