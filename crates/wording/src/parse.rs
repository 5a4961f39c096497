//! Parser of durations and sizes that users type.

/// Unit of a number that is given without a unit. The value of a variant is the exponent of the power of ten that
/// converts the number to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultUnit {
    /// 1.5 means 1.5 µs.
    Microseconds = 3,
    /// 1.5 means 1.5 ms.
    Milliseconds = 6,
    /// 1.5 means 1.5 s.
    Seconds = 9,
}

/// Parses a duration such as 1.5, 1.5s, 20ms, 7us or 100ns, and returns nanoseconds. Fractions of a
/// nanosecond are dropped.
pub fn parse_duration(text: &str, default: DefaultUnit) -> Option<i64> {
    let units = [("ns", 0), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)];
    let (number, digits) = units
        .iter()
        .find_map(|(unit, digits)| Some((text.strip_suffix(unit)?, *digits)))
        .unwrap_or((text, default as usize));
    decimal(number, digits)
}

/// Parses a number of bytes such as 1000 or 20G. The suffixes K, M, G and T are powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    let number: u64 = text[..text.len() - 1].trim_end().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// Returns a decimal number times 10^`digits`, without rounding errors. Digits after the `digits`-th decimal
/// are dropped.
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
    fn a_number_without_unit_has_the_default_one() {
        use DefaultUnit::{Microseconds, Milliseconds, Seconds};
        assert_eq!(parse_duration("1.5", Microseconds), Some(1_500));
        assert_eq!(parse_duration("1.5", Milliseconds), Some(1_500_000));
        assert_eq!(parse_duration("-2", Seconds), Some(-2_000_000_000));
        assert_eq!(parse_duration("20ms", Microseconds), Some(20_000_000));
        assert_eq!(parse_duration("fast", Seconds), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("1000"), Some(1000));
        assert_eq!(parse_bytes("20G"), Some(20 * 1024 * 1024 * 1024));
        assert_eq!(parse_bytes(" 3 m "), Some(3 * 1024 * 1024));
        assert_eq!(parse_bytes("99999999T"), None);
        assert_eq!(parse_bytes("20GB"), None);
        assert_eq!(parse_bytes("G"), None);
        assert_eq!(parse_bytes(""), None);
        assert_eq!(parse_bytes("20é"), None);
    }
}
