//! How numbers read in sentences.

/// A number with its thousands apart.
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

/// Bytes in the unit that suits them.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        10_485_760..10_737_418_240 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// A stretch of time, given in nanoseconds, in the unit that suits it once it is rounded.
pub fn duration(ns: i64) -> String {
    match ns.unsigned_abs() {
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

/// A moment, in seconds.
pub(crate) fn moment(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// A share of a whole; `-` of nothing.
pub fn percent(part: i64, whole: i64) -> String {
    match whole {
        ..=0 => "-".to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// So many things: `1 turn`, `2 turns`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(count)),
    }
}

/// Things one after the other: `0, 2 and 4`.
pub(crate) fn listed<T: ToString>(things: impl IntoIterator<Item = T>) -> String {
    let mut things: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    match (things.pop(), things.is_empty()) {
        (None, _) => String::new(),
        (Some(last), true) => last,
        (Some(last), false) => format!("{} and {last}", things.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_easily() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(size(2048), "2048 B");
        assert_eq!(size(43 << 20), "43.0 MiB");
        assert_eq!(duration(950), "950 ns");
        assert_eq!(duration(-1_500_000), "-1.5 ms");
        assert_eq!(duration(999_949), "999.9 µs");
        assert_eq!(duration(999_950), "1.0 ms");
        assert_eq!(duration(999_960_000), "1.000 s");
        assert_eq!(duration(10_069_975_600), "10.070 s");
        assert_eq!(duration(-242_500_000_000), "-4 min 02 s");
        assert_eq!(duration(3_725_000_000_000), "1 h 02 min");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 0), "-");
        assert_eq!(listed([0, 2, 4]), "0, 2 and 4");
        assert_eq!(listed(["a"]), "a");
        let turns = [0, 1, 2_000].map(|count| counted(count, "turn", "turns"));
        assert_eq!(turns, ["0 turns", "1 turn", "2,000 turns"]);
    }
}
