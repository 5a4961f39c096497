//! Tables for a probe that times the phases of an operation. Each setting has a table with a row for each
//! method and a column for each phase.

use measure::FilesPhase;

use super::table::{self, Table};
use super::{Outcome, Report};
use crate::output::{Side, counted, duration};

/// Text below these tables that explains their numbers.
pub(super) const MEANING: &str = "The column of a phase shows the median over all runs. The columns of single reads \
                                  cover the reads of all runs, each timed from its request to its observed \
                                  completion. Mticks are millions of clock ticks.";

/// Phases for which the tables show a comparison.
pub(super) const COMPARED: [FilesPhase; 2] = [FilesPhase::Read, FilesPhase::Total];

const COLUMNS: [(&str, Side); 12] = [
    ("method", Side::Left),
    ("open", Side::Right),
    ("set up", Side::Right),
    ("read", Side::Right),
    ("sum", Side::Right),
    ("total", Side::Right),
    ("Mticks", Side::Right),
    ("one read: median", Side::Right),
    ("p99 (bounds)", Side::Right),
    ("max", Side::Right),
    ("read vs first", Side::Left),
    ("total vs first", Side::Left),
];

/// Returns one table for each setting.
pub(super) fn tables(report: &Report<'_>) -> Vec<Table> {
    let mut settings: Vec<&str> = report.results.iter().map(|result| result.setting).collect();
    settings.dedup();
    let table = |setting| {
        let of_setting = report
            .results
            .iter()
            .filter(|result| result.setting == setting);
        let results: Vec<&Outcome<'_>> = of_setting.collect();
        let rounds = results.iter().map(|result| result.runs).max().unwrap_or(0);
        Table {
            title: Some(format!(
                "{setting}, {}",
                counted(rounds as u64, "round", "rounds")
            )),
            columns: COLUMNS.to_vec(),
            rows: rows(&results, report.clock.ticks_per_second),
        }
    };
    settings.into_iter().map(table).collect()
}

fn rows(results: &[&Outcome<'_>], ticks_per_second: Option<u64>) -> Vec<Vec<String>> {
    let is_total = |result: &&&Outcome<'_>| result.phase == Some(FilesPhase::Total.name());
    let row = |total: &&Outcome<'_>| {
        let result = |phase: FilesPhase| {
            results
                .iter()
                .find(|result| result.method == total.method && result.phase == Some(phase.name()))
        };
        let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), duration);
        let median = |phase| known(result(phase).and_then(|result| result.latency.p50_ns));
        let compared = |phase| {
            let compared = result(phase).and_then(|result| result.compared.as_ref());
            compared.map_or_else(String::new, |compared| compared.words())
        };
        let each = result(FilesPhase::EachRead).map(|result| &result.latency);
        let ticks = total.latency.p50_ns.zip(ticks_per_second);
        let [read, total_compared] = COMPARED.map(compared);
        vec![
            total.method.to_owned(),
            median(FilesPhase::Open),
            median(FilesPhase::SetUp),
            median(FilesPhase::Read),
            median(FilesPhase::Sum),
            median(FilesPhase::Total),
            ticks.map_or_else(|| "-".to_owned(), |(ns, rate)| megaticks(ns, rate)),
            known(each.and_then(|each| each.p50_ns)),
            each.map_or_else(
                || "-".to_owned(),
                |each| table::bounded(each.p99_ns, each.p99_bounds_ns),
            ),
            known(each.and_then(|each| each.max_ns)),
            read,
            total_compared,
        ]
    };
    results.iter().filter(is_total).map(row).collect()
}

fn megaticks(ns: i64, ticks_per_second: u64) -> String {
    format!("{:.2}", ns as f64 * ticks_per_second as f64 / 1e15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_time_by_their_rate() {
        // 10 ms at a rate of 2.595 GHz are 25.95 million ticks.
        assert_eq!(megaticks(10_000_000, 2_595_000_000), "25.95");
    }
}
