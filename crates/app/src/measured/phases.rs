//! The table of a probe that times parts of an operation: a row for each method, a column for each
//! part; one table for each setting.

use std::io::{self, Write};

use measure::FilesPhase;

use super::{Outcome, Report};
use crate::output::{self, Columns, Side, duration};

/// Writes a table for each setting.
pub(super) fn phases(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut settings: Vec<&str> = report.results.iter().map(|of| of.setting).collect();
    settings.dedup();
    for setting in settings {
        output::heading(out, setting)?;
        let of_setting = report.results.iter().filter(|of| of.setting == setting);
        let results: Vec<&Outcome<'_>> = of_setting.collect();
        table(&results, report.clock.ticks_per_second, out)?;
    }
    output::paragraph(
        out,
        "Of each part the median run; of single reads, from when they were asked for until they were \
         seen to be complete, those of all runs. A tick is one of the clock's.",
    )
}

const HEADINGS: [&str; 12] = [
    "method",
    "open",
    "set up",
    "read",
    "sum",
    "total",
    "Mticks",
    "one read: median",
    "p99",
    "max",
    "read, to the first's",
    "total, to the first's",
];

fn table(
    results: &[&Outcome<'_>],
    ticks_per_second: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sides = [Side::Right; HEADINGS.len()];
    for left in [0, HEADINGS.len() - 2, HEADINGS.len() - 1] {
        sides[left] = Side::Left;
    }
    let mut columns = Columns::new(&sides);
    columns.row(HEADINGS);
    let is_total = |of: &&&Outcome<'_>| of.phase == Some(FilesPhase::Total.name());
    for total in results.iter().filter(is_total) {
        let of = |phase: FilesPhase| {
            results
                .iter()
                .find(|of| of.method == total.method && of.phase == Some(phase.name()))
        };
        let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), duration);
        let median = |phase| known(of(phase).and_then(|of| of.latency.p50_ns));
        let compared = |phase| {
            let compared = of(phase).and_then(|of| of.compared.as_ref());
            compared.map_or_else(String::new, |compared| compared.words())
        };
        let each = of(FilesPhase::EachRead).map(|of| &of.latency);
        let ticks = total.latency.p50_ns.zip(ticks_per_second);
        columns.row([
            total.method.to_owned(),
            median(FilesPhase::Open),
            median(FilesPhase::SetUp),
            median(FilesPhase::Read),
            median(FilesPhase::Sum),
            median(FilesPhase::Total),
            ticks.map_or_else(|| "-".to_owned(), |(ns, rate)| megaticks(ns, rate)),
            known(each.and_then(|each| each.p50_ns)),
            known(each.and_then(|each| each.p99_ns)),
            known(each.and_then(|each| each.max_ns)),
            compared(FilesPhase::Read),
            compared(FilesPhase::Total),
        ]);
    }
    columns.write(out)
}

fn megaticks(ns: i64, ticks_per_second: u64) -> String {
    format!("{:.2}", ns as f64 * ticks_per_second as f64 / 1e15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_time_by_their_rate() {
        // 10 ms at 2.595 GHz.
        assert_eq!(megaticks(10_000_000, 2_595_000_000), "25.95");
    }
}
