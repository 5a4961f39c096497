//! Corrections of p values if several questions are tested at once.

/// Returns the p values after Holm's correction. Use this correction for the few metrics of one question: the
/// probability of at least one error does not exceed the stated probability.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let count = p.len();
    let mut adjusted = vec![0.0; count];
    let mut least: f64 = 0.0;
    for (place, index) in order(p).into_iter().enumerate() {
        least = least.max((p[index] * (count - place) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// Returns the p values after Benjamini and Hochberg's correction. Use this correction for a search through many rows:
/// the expected share of errors among all findings does not exceed the stated share.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let count = p.len();
    let mut adjusted = vec![0.0; count];
    let mut most: f64 = 1.0;
    for (place, index) in order(p).into_iter().enumerate().rev() {
        most = most.min(p[index] * count as f64 / (place + 1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

/// Returns the indexes of the p values, sorted by ascending p value.
fn order(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}
