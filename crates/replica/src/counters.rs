//! Reader of disk counters in CSV, as Performance Monitor, `typeperf` and `relog -f csv` write them.
//!
//! The reader needs the counter `Disk Write Bytes/sec` of the volume. If the file contains the counters `Disk
//! Writes/sec` and `Avg. Disk sec/Write`, the reader also uses them
//! (<https://learn.microsoft.com/windows-server/administration/windows-commands/typeperf>).

use super::load::{Load, Write};

/// Reason why a file of counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// The file is not CSV.
    #[error("not a CSV file")]
    Csv(#[from] csv::Error),
    /// The counter is missing.
    #[error(
        "no column `LogicalDisk({volume})\\Disk Write Bytes/sec`, or the same counter of the `PhysicalDisk` with \
         this volume: record one of these counters"
    )]
    NoCounter {
        /// Name of the volume, such as `C:`.
        volume: String,
    },
    /// A time cannot be parsed.
    #[error("line {line}: `{}` is not a time such as 10/08/2026 13:45:30.123", .found.escape_debug())]
    Time {
        /// Number of the line with the time, counted from 1.
        line: u64,
        /// Text that should be a time.
        found: String,
    },
    /// The file has fewer than two samples, so there is no interval between samples.
    #[error("too few samples for a rate: found {found}, at least 2 are needed")]
    TooFew {
        /// Number of samples that the file has.
        found: usize,
    },
}

/// Reads the samples of a volume, such as `C:`. A sample covers the time since the previous sample. If a
/// sample has no bytes per second, it is skipped. If a sample has no number of writes, its bytes count as one
/// write. If a sample has no latency, the latency is unknown.
///
/// # Errors
/// Returns an error if the file cannot be read or has no samples of this volume.
pub fn read_counters(bytes: &[u8], volume: &str) -> Result<Load, CountersError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let headers = reader.byte_headers()?.clone();
    let column = |counter: &str| {
        headers.iter().position(|header| {
            let header = String::from_utf8_lossy(header).to_lowercase();
            let path = header.strip_suffix(&format!("\\{}", counter.to_lowercase()));
            path.is_some_and(|path| is_of(path, volume))
        })
    };
    let rate = column("Disk Write Bytes/sec").ok_or_else(|| CountersError::NoCounter {
        volume: volume.to_owned(),
    })?;
    let (count, latency) = (column("Disk Writes/sec"), column("Avg. Disk sec/Write"));
    let mut writes = Vec::new();
    let (mut first, mut before, mut samples) = (None, None::<i64>, 0);
    for record in reader.byte_records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let text = String::from_utf8_lossy(record.get(0).unwrap_or_default()).into_owned();
        let time_ns = moment_ns(text.trim()).ok_or_else(|| CountersError::Time {
            line,
            found: text.chars().take(80).collect(),
        })?;
        samples += 1;
        first = first.or(Some(time_ns));
        let number = |column: usize| -> Option<f64> {
            let text = std::str::from_utf8(record.get(column)?).ok()?;
            text.trim()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        };
        if let (Some(before), Some(rate)) = (before, number(rate)) {
            let seconds = time_ns.saturating_sub(before).max(0) as f64 / 1e9;
            let bytes = (rate * seconds).round() as u64;
            let count = count
                .and_then(number)
                .map(|count| (count * seconds).round() as u64);
            // If bytes were written, there was at least one write, even if the number of writes is rounded to
            // 0.
            let count = count.unwrap_or(1).max(u64::from(bytes > 0));
            writes.push(Write {
                time_ns,
                bytes,
                count: if bytes == 0 { 0 } else { count },
                latency_ns: latency
                    .and_then(number)
                    .map(|seconds| (seconds * 1e9).round() as i64),
            });
        }
        before = Some(time_ns);
    }
    match (first, before) {
        (Some(first), Some(last)) if samples > 1 => Ok(Load::new(writes, first, last)),
        _ => Err(CountersError::TooFew { found: samples }),
    }
}

/// Returns true if a counter's path belongs to the volume, such as `\\host\logicaldisk(c:)` or
/// `physicaldisk(0 c:)`.
fn is_of(path: &str, volume: &str) -> bool {
    let volume = volume.to_lowercase();
    let Some((object, instance)) = path.rsplit_once('(') else {
        return false;
    };
    let instance = instance.trim_end_matches(')');
    (object.ends_with("logicaldisk") || object.ends_with("physicaldisk"))
        && instance.split_whitespace().any(|word| word == volume)
}

/// Parses a time such as `10/08/2026 13:45:30.123` (month first). Returns nanoseconds since a fixed day.
fn moment_ns(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let mut date = date.splitn(3, '/').map(|part| part.parse::<i64>().ok());
    let (month, day, year) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute): (i64, i64) = (time.next()?.parse().ok()?, time.next()?.parse().ok()?);
    let second: f64 = time.next()?.parse().ok()?;
    let fine = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (1_980..=2_200).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&second);
    // Days are counted from 1 March 0000. If a year begins in March, the leap day is its last day.
    let (shifted_year, shifted_month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let days = 365 * shifted_year + shifted_year / 4 - shifted_year / 100 + shifted_year / 400
        + (153 * shifted_month + 2) / 5
        + day
        // Only time differences matter. This offset keeps the nanoseconds within 64 bits.
        - 730_000;
    fine.then(|| {
        ((days * 24 + hour) * 60 + minute) * 60_000_000_000 + (second * 1e9).round() as i64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `typeperf`, in which the first sample of a rate is empty.
    const SAMPLE: &str = "\
\"(PDH-CSV 4.0)\",\"\\\\SR1\\LogicalDisk(C:)\\Disk Write Bytes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Disk Write Bytes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Disk Writes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Avg. Disk sec/Write\"
\"02/28/2028 23:59:59.000\",\" \",\" \",\" \",\" \"
\"02/29/2028 00:00:01.000\",\"7\",\"1000000\",\"20\",\"0.002\"
\"02/29/2028 00:00:01.500\",\"7\",\"0\",\"0\",\"0\"
\"03/01/2028 00:00:01.500\",\"7\",\"\",\"\",\"\"
";

    #[test]
    fn samples_are_rates_times_the_interval() {
        let load = read_counters(SAMPLE.as_bytes(), "d:").unwrap();
        let [write] = load.writes() else {
            panic!("{:?}", load.writes())
        };
        assert_eq!(
            (write.bytes, write.count, write.latency_ns),
            (2_000_000, 40, Some(2_000_000))
        );
        // The recording is one day and 2.5 s long, because it includes the leap day, 29 February 2028.
        assert_eq!(
            load.watched_ns(),
            (86_400 + 2) * 1_000_000_000 + 500_000_000
        );
    }

    #[test]
    fn files_without_samples_are_refused() {
        let refused = |text: &str, volume: &str, what: &str| {
            let error = read_counters(text.as_bytes(), volume)
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{error}");
        };
        refused(SAMPLE, "E:", "LogicalDisk(E:)");
        refused("", "C:", "no column");
        refused(SAMPLE.lines().next().unwrap(), "C:", "found 0, at least 2");
        refused(
            &SAMPLE.replace("02/29/2028 00:00:01.500", "soon"),
            "C:",
            "line 4",
        );
        refused(
            &SAMPLE.replace("02/29/2028 00:00:01.500", "13/29/2028 00:00:01.500"),
            "C:",
            "line 4",
        );
    }
}
