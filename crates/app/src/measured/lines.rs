//! Sleeps as lines of text, in the format of the program SleepBenchmark.

use std::io::{self, Write};

use measure::Measurement;

/// Writes a line for every completed sleep, in the order in which the sleeps started.
pub(crate) fn sleep_lines(measurement: &Measurement, out: &mut dyn Write) -> io::Result<()> {
    let mut sleeps = Vec::new();
    for series in &measurement.series {
        sleeps.extend(series.samples.iter().map(|sample| (series, sample)));
    }
    sleeps.sort_by_key(|(_, sample)| sample.start_ns);
    let ms = |ns: i64| ns as f64 / 1e6;
    for (series, sample) in sleeps {
        let (Some(requested), Some(late)) = (series.requested_ns, sample.latency_ns) else {
            continue;
        };
        match series.resolution_ns {
            Some(ns) => write!(out, "Resolution: {:.6}ms, ", ms(ns))?,
            None => write!(out, "Resolution: unknown, ")?,
        }
        writeln!(
            out,
            "{}({}) slept {:.6}ms (delta: {:.6})",
            series.method,
            ms(requested),
            ms(requested.saturating_add(late)),
            ms(late)
        )?;
    }
    out.flush()
}
