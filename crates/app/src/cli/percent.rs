//! Percentages on the command line.

/// Parses a percentage from 0.01 to 100. Returns it as a fraction.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok();
    number
        .filter(|percent| (0.01..=100.0).contains(percent))
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "expected a percentage from 0.01 to 100".to_owned())
}
