//! Parser of times that need a unit: durations of whole runs, and limits of them.

use std::time::Duration;

use wording::{DefaultUnit, parse_duration};

/// Parses a time above 0, such as 500ms, 10s or 5m. A number without a unit is refused, because it could mean seconds as
/// well as milliseconds.
pub(super) fn time_with_unit(text: &str) -> Result<Duration, String> {
    const EXAMPLES: &str = "a time such as 500ms, 10s or 5m";
    let has_unit = |text: &str| text.ends_with(|last: char| last.is_alphabetic());
    let minutes = text.strip_suffix('m').filter(|number| !has_unit(number));
    let ns = match minutes {
        Some(minutes) => {
            parse_duration(minutes, DefaultUnit::Seconds).and_then(|ns| ns.checked_mul(60))
        }
        None => parse_duration(text, DefaultUnit::Seconds),
    };
    if ns.is_some() && !has_unit(text) {
        return Err(format!("the unit is missing; give {EXAMPLES}"));
    }
    ns.and_then(|ns| u64::try_from(ns).ok())
        .filter(|ns| *ns > 0)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("expected {EXAMPLES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused() {
        for (text, ms) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("5m", 300_000),
            ("0.5m", 30_000),
        ] {
            assert_eq!(
                time_with_unit(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for number in ["1", "1.5", "60", "0"] {
            let refused = time_with_unit(number).unwrap_err();
            assert!(refused.starts_with("the unit is missing; "), "{refused}");
        }
        for odd in ["0s", "-1s", "x", "", "m", "1sm", "5h"] {
            let refused = time_with_unit(odd).unwrap_err();
            assert!(refused.starts_with("expected a time "), "{odd}: {refused}");
        }
    }
}
