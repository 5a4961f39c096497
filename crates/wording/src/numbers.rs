//! Text for numbers with their units.

/// Formats a number with a comma between groups of three digits, such as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes with a unit that depends on the rounded value, such as `950 B` or `43.0 MiB`.
pub fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut text = format!("{bytes} B");
    for unit in ["KiB", "MiB", "GiB", "TiB"] {
        // With one decimal, larger amounts would be rounded to 1024.0. So they get the next unit.
        if amount < 1023.95 {
            break;
        }
        amount /= 1024.0;
        text = format!("{amount:.1} {unit}");
    }
    text
}

/// Longest duration that a correct recording can have, in nanoseconds: ten years. Longer durations are computed from damaged
/// times.
const LONGEST_NS: u64 = 10 * 366 * 86_400 * 1_000_000_000;

/// Formats nanoseconds with a unit that depends on the rounded value, such as `950 ns`, `1.5 ms` or `1 h 02
/// min`. Returns `an unknown time` if no recording can last so long.
pub fn duration(ns: i64) -> String {
    match ns.unsigned_abs() {
        LONGEST_NS.. => "an unknown time".to_owned(),
        0..1_000 => format!("{ns} ns"),
        1_000..999_950 => format!("{:.1} µs", ns as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1} ms", ns as f64 / 1e6),
        999_950_000..100_000_000_000 => format!("{:.3} s", ns as f64 / 1e9),
        seconds => {
            let sign = if ns < 0 { "-" } else { "" };
            let seconds = seconds / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            match hours {
                0 => format!("{sign}{minutes} min {seconds:02} s"),
                _ => format!("{sign}{hours} h {minutes:02} min"),
            }
        }
    }
}

/// Formats a time in nanoseconds since the trace's start as seconds, such as `30.412 s`.
pub fn moment(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Formats a part of a whole as a percentage, such as `12.5 %`. Returns `-` if the whole is zero or
/// negative.
pub fn percent(part: i64, whole: i64) -> String {
    match whole {
        ..=0 => "-".to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(2048), "2.0 KiB");
        assert_eq!(size(43 << 20), "43.0 MiB");
        assert_eq!(size((1 << 20) - 1), "1.0 MiB");
        assert_eq!(size(4 << 30), "4.0 GiB");
        assert_eq!(size(2 << 40), "2.0 TiB");
        assert_eq!(duration(950), "950 ns");
        assert_eq!(duration(-1_500_000), "-1.5 ms");
        assert_eq!(duration(999_949), "999.9 µs");
        assert_eq!(duration(999_950), "1.0 ms");
        assert_eq!(duration(999_960_000), "1.000 s");
        assert_eq!(duration(10_069_975_600), "10.070 s");
        assert_eq!(duration(-242_500_000_000), "-4 min 02 s");
        assert_eq!(duration(3_725_000_000_000), "1 h 02 min");
        assert_eq!(moment(30_412_400_000), "30.412 s");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 0), "-");
    }
}
