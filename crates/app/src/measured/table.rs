//! Tables of results, for output as text and HTML.

use measure::Probe;
use tables::Named;

use super::phases;
use super::{Outcome, Report};
use crate::output::{Side, duration, grouped};

/// A table of results.
pub(super) struct Table {
    /// Title of the table; `None` for the main table of a page.
    pub(super) title: Option<String>,
    /// Heading and alignment of each column.
    pub(super) columns: Vec<(&'static str, Side)>,
    /// Cells of each row. An unknown value is a dash.
    pub(super) rows: Vec<Vec<String>>,
}

const COLUMNS: [(&str, Side); 11] = [
    ("method", Side::Left),
    ("setting", Side::Left),
    ("samples", Side::Right),
    ("min", Side::Right),
    ("median", Side::Right),
    ("p90", Side::Right),
    ("p99 (bounds)", Side::Right),
    ("p99.9 (bounds)", Side::Right),
    ("max", Side::Right),
    ("incomplete", Side::Right),
    ("started late", Side::Right),
];

/// Returns the tables of a measurement.
pub(super) fn tables(report: &Report<'_>) -> Vec<Table> {
    match report.probe {
        "files" => phases::tables(report),
        _ => {
            let latencies = Table {
                title: None,
                columns: columns(report),
                rows: report.results.iter().map(row).collect(),
            };
            [Some(latencies), start_delays(report)]
                .into_iter()
                .flatten()
                .collect()
        }
    }
}

/// Returns a table with the start delays of packets. Returns `None` if all start delays are negligible.
fn start_delays(report: &Report<'_>) -> Option<Table> {
    let late = report
        .results
        .iter()
        .filter(|result| begins_late(report.probe, result));
    let rows: Vec<Vec<String>> = late
        .map(|result| {
            let delay = &result.start_delay;
            vec![
                method(result),
                result.setting.to_owned(),
                known(delay.p50_ns),
                bounded(delay.p99_ns, delay.p99_bounds_ns),
                known(delay.max_ns),
            ]
        })
        .collect();
    let columns = vec![
        ("method", Side::Left),
        ("setting", Side::Left),
        ("median", Side::Right),
        ("p99 (bounds)", Side::Right),
        ("max", Side::Right),
    ];
    (!rows.is_empty()).then(|| Table {
        title: Some("Start delays: sent later than planned".to_owned()),
        columns,
        rows,
    })
}

/// Returns true if packets were sent so late that the latency alone is misleading. This is the case if a
/// packet was sent at least one interval late, or if the p99 of the start delays is at least a tenth of the
/// median latency. Below 368 samples, the maximum is used instead of the p99.
pub(super) fn begins_late(probe: &str, result: &Outcome<'_>) -> bool {
    let delay = result.start_delay.p99_ns.or(result.start_delay.max_ns);
    let is_long = delay.zip(result.latency.p50_ns);
    probe == Probe::Net.name()
        && (result.pacing.missed > 0 || is_long.is_some_and(|(delay, median)| delay >= median / 10))
}

fn columns(report: &Report<'_>) -> Vec<(&'static str, Side)> {
    let has_settings = |result: &Outcome<'_>| {
        let compared = result.compared.as_ref();
        compared.is_some_and(|compared| compared.with.setting != result.setting)
    };
    let compared = if report.results.iter().any(has_settings) {
        "median vs first setting"
    } else {
        "median vs first"
    };
    COLUMNS
        .into_iter()
        .chain([(compared, Side::Left)])
        .collect()
}

fn row(outcome: &Outcome<'_>) -> Vec<String> {
    let latency = &outcome.latency;
    let compared = outcome.compared.as_ref();
    vec![
        method(outcome),
        outcome.setting.to_owned(),
        grouped(latency.count + latency.unknown),
        known(latency.min_ns),
        known(latency.p50_ns),
        known(latency.p90_ns),
        bounded(latency.p99_ns, latency.p99_bounds_ns),
        bounded(latency.p99_9_ns, latency.p99_9_bounds_ns),
        known(latency.max_ns),
        grouped(latency.unknown),
        grouped(outcome.pacing.missed),
        compared.map_or(String::new(), |compared| compared.words()),
    ]
}

fn method(outcome: &Outcome<'_>) -> String {
    let mut method = outcome.method.to_owned();
    if let Some(phase) = outcome.phase {
        method = format!("{method} {phase}");
    }
    if let Some(bytes) = outcome.size_bytes {
        method = format!("{method}, {} bytes", grouped(bytes));
    }
    method
}

fn known(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), duration)
}

/// Formats a quantile with its bounds.
pub(super) fn bounded(ns: Option<i64>, bounds_ns: Option<[i64; 2]>) -> String {
    let both = ns.zip(bounds_ns);
    both.map_or_else(
        || "-".to_owned(),
        |(ns, [low, high])| format!("{} ({} to {})", duration(ns), duration(low), duration(high)),
    )
}

#[cfg(test)]
mod tests {
    use measure::{Lateness, Percentiles};

    use super::*;

    /// Returns results with 100 latencies of 1,000 ns and these start delays.
    fn outcome(delays_ns: &[i64], missed: u64) -> Outcome<'static> {
        let latency = Percentiles::from_latencies([Some(1_000); 100]).summary(|_| 100);
        let delays = delays_ns.iter().map(|ns| Some(*ns));
        Outcome {
            method: "udp 1000/s",
            setting: "usual",
            phase: None,
            requested_ns: None,
            size_bytes: None,
            runs: 6,
            latency,
            start_delay: Percentiles::from_latencies(delays).summary(|_| delays_ns.len() as u64),
            pacing: Lateness {
                missed,
                worst_ns: 0,
            },
            compared: None,
        }
    }

    #[test]
    fn a_quantile_is_shown_only_with_its_bounds() {
        let shown = bounded(Some(480_000), Some([431_000, 612_900]));
        assert_eq!(shown, "480.0 µs (431.0 µs to 612.9 µs)");
        assert_eq!(bounded(Some(480_000), None), "-");
        assert_eq!(bounded(None, None), "-");
    }

    #[test]
    fn start_delays_are_shown_from_a_tenth_of_the_latency() {
        assert!(!begins_late("net", &outcome(&[99; 100], 0)));
        assert!(begins_late("net", &outcome(&[100; 100], 0)));
        assert!(begins_late("net", &outcome(&[1; 100], 1)));
        // If one packet of 400 is late, the p99 is still low. If one packet of 20 is late, the maximum is
        // used, which is high.
        let with_one = |count: usize| {
            let mut delays = vec![1; count];
            delays[0] = 500;
            outcome(&delays, 0)
        };
        assert!(!begins_late("net", &with_one(400)));
        assert!(begins_late("net", &with_one(20)));
        assert!(!begins_late("sleep", &outcome(&[500; 100], 3)));
    }
}
