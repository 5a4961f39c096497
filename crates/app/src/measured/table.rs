//! Tables of results, for output as text and HTML.

use super::phases;
use super::{Outcome, Report};
use crate::output::{Side, duration, grouped};

/// A table of results.
pub(super) struct Table {
    /// Title of the table; `None` if it is the only table.
    pub(super) title: Option<String>,
    /// Heading and alignment of each column.
    pub(super) columns: Vec<(&'static str, Side)>,
    /// Cells of each row. An unknown value is a dash.
    pub(super) rows: Vec<Vec<String>>,
}

const COLUMNS: [(&str, Side); 12] = [
    ("method", Side::Left),
    ("setting", Side::Left),
    ("samples", Side::Right),
    ("min", Side::Right),
    ("median", Side::Right),
    ("p90", Side::Right),
    ("p99", Side::Right),
    ("p99.9", Side::Right),
    ("max", Side::Right),
    ("not done", Side::Right),
    ("missed", Side::Right),
    ("median vs first", Side::Left),
];

/// Returns the tables of a measurement.
pub(super) fn tables(report: &Report<'_>) -> Vec<Table> {
    match report.probe {
        "files" => phases::tables(report),
        _ => vec![Table {
            title: None,
            columns: COLUMNS.to_vec(),
            rows: report.results.iter().map(row).collect(),
        }],
    }
}

fn row(outcome: &Outcome<'_>) -> Vec<String> {
    let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), duration);
    let latency = &outcome.latency;
    let mut method = outcome.method.to_owned();
    if let Some(phase) = outcome.phase {
        method = format!("{method} {phase}");
    }
    if let Some(bytes) = outcome.size_bytes {
        method = format!("{method}, {} bytes", grouped(bytes));
    }
    let compared = outcome.compared.as_ref();
    vec![
        method,
        outcome.setting.to_owned(),
        grouped(latency.count + latency.unknown),
        known(latency.min_ns),
        known(latency.p50_ns),
        known(latency.p90_ns),
        known(latency.p99_ns),
        known(latency.p99_9_ns),
        known(latency.max_ns),
        grouped(latency.unknown),
        grouped(outcome.pacing.missed),
        compared.map_or(String::new(), |compared| compared.words()),
    ]
}
