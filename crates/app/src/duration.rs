//! Stretches of time as users write them.

/// The unit of a number that is given without one, as a power of ten in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// 1.5 is 1.5 µs.
    Microseconds = 3,
    /// 1.5 is 1.5 ms.
    Milliseconds = 6,
    /// 1.5 is 1.5 s.
    Seconds = 9,
}

/// Nanoseconds in text such as 1.5, 1.5s, 20ms, 7us or 100ns; digits beyond are dropped.
pub(crate) fn nanoseconds(text: &str, plain: Plain) -> Option<i64> {
    let units = [("ns", 0), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)];
    let (number, digits) = units
        .iter()
        .find_map(|(unit, digits)| Some((text.strip_suffix(unit)?, *digits)))
        .unwrap_or((text, plain as usize));
    decimal(number, digits)
}

/// A decimal number times 10^`digits`, exactly; digits beyond are dropped.
fn decimal(text: &str, digits: usize) -> Option<i64> {
    let (negative, text) = match text.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.trim()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction: String = fraction
        .chars()
        .chain(std::iter::repeat('0'))
        .take(digits)
        .collect();
    let value: i64 = format!("0{whole}{fraction}").parse().ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_unit_has_the_given_one() {
        assert_eq!(nanoseconds("1.5", Plain::Microseconds), Some(1_500));
        assert_eq!(nanoseconds("1.5", Plain::Milliseconds), Some(1_500_000));
        assert_eq!(nanoseconds("-2", Plain::Seconds), Some(-2_000_000_000));
        assert_eq!(nanoseconds("20ms", Plain::Microseconds), Some(20_000_000));
        assert_eq!(nanoseconds("fast", Plain::Seconds), None);
    }
}
