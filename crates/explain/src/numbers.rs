//! Numbers of findings that no correct trace can have. Damaged data, or parts that are counted twice, must not become a
//! number in a sentence.

/// Rounding and events at the edges may make a part this much larger than its whole, in thousandths of the whole.
const TOLERANCE: i128 = 5;

/// Formats a part of a whole as a percentage, such as `12.5 %`. A share below 0 % or above 100 % is impossible: then this
/// function returns words instead of a number.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    match share(part, whole) {
        Some(_) => wording::percent(part.min(whole), whole),
        None => "an unknown share".to_owned(),
    }
}

/// Returns a part of a whole in percent. Returns `None` if the share is impossible.
pub(crate) fn share(part: i64, whole: i64) -> Option<f64> {
    let most = i128::from(whole) * (1_000 + TOLERANCE);
    let is_possible = whole > 0 && part >= 0 && i128::from(part) * 1_000 <= most;
    is_possible.then(|| 100.0 * part.min(whole) as f64 / whole as f64)
}

/// Returns true if a number in percent is a possible share.
pub(crate) fn is_possible_share(percent: f64) -> bool {
    (0.0..=100.0 + TOLERANCE as f64 / 10.0).contains(&percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shares_are_no_numbers() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1_001, 1_000), "100.0 %");
        for (part, whole) in [(1_006, 1_000), (-1, 8), (1, 0), (1, -1), (i64::MAX, 1)] {
            assert_eq!(
                percent(part, whole),
                "an unknown share",
                "{part} of {whole}"
            );
        }
        assert!(!is_possible_share(f64::NAN) && !is_possible_share(100.6));
        assert!(is_possible_share(0.0) && is_possible_share(100.0));
    }
}
