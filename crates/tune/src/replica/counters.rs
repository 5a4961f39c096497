//! Samples of a disk's counters, as Performance Monitor, `typeperf` and `relog -f csv` write them.
//!
//! Read are `Disk Write Bytes/sec` of the volume, and if they are there `Disk Writes/sec` and
//! `Avg. Disk sec/Write`
//! (<https://learn.microsoft.com/windows-server/administration/windows-commands/typeperf>).

use super::load::{Load, Write};

/// A file is no such samples.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// No CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// Without the counter.
    #[error(
        "no column is `LogicalDisk({volume})\\Disk Write Bytes/sec` or the same of a PhysicalDisk"
    )]
    NoCounter {
        /// The volume asked for.
        volume: String,
    },
    /// A moment that cannot be read.
    #[error("line {line}: `{}` is no moment such as 10/08/2026 13:45:30.123", .found.escape_debug())]
    Time {
        /// Where, from 1 on.
        line: u64,
        /// What stands there.
        found: String,
    },
    /// Fewer than two samples, so that their distance is unknown.
    #[error("{found} samples; it takes 2 to know what a rate is of")]
    TooFew {
        /// How many there are.
        found: usize,
    },
}

/// Reads samples of a volume, such as `C:`. Each stands for the time since the one before. What a sample
/// lacks is unknown, and a sample without bytes per second is left out.
///
/// # Errors
/// If the file is none.
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
            // Bytes come of one write at least, however its count was rounded.
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

/// Whether a counter's path is of a volume's instance: `\\host\logicaldisk(c:)`, `physicaldisk(0 c:)`.
fn is_of(path: &str, volume: &str) -> bool {
    let volume = volume.to_lowercase();
    let Some((object, instance)) = path.rsplit_once('(') else {
        return false;
    };
    let instance = instance.trim_end_matches(')');
    (object.ends_with("logicaldisk") || object.ends_with("physicaldisk"))
        && instance.split_whitespace().any(|word| word == volume)
}

/// `10/08/2026 13:45:30.123`, month first, as nanoseconds since a day long ago.
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
    // Days since 1 March 0000, by the rule that a year which begins in March ends with the leap day.
    let (shifted_year, shifted_month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let days = 365 * shifted_year + shifted_year / 4 - shifted_year / 100 + shifted_year / 400
        + (153 * shifted_month + 2) / 5
        + day
        // Only the difference matters; near enough for 64 bits of nanoseconds.
        - 730_000;
    fine.then(|| {
        ((days * 24 + hour) * 60 + minute) * 60_000_000_000 + (second * 1e9).round() as i64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of `typeperf`, whose first sample of a rate is empty.
    const SAMPLE: &str = "\
\"(PDH-CSV 4.0)\",\"\\\\SR1\\LogicalDisk(C:)\\Disk Write Bytes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Disk Write Bytes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Disk Writes/sec\",\"\\\\SR1\\LogicalDisk(D:)\\Avg. Disk sec/Write\"
\"02/28/2028 23:59:59.000\",\" \",\" \",\" \",\" \"
\"02/29/2028 00:00:01.000\",\"7\",\"1000000\",\"20\",\"0.002\"
\"02/29/2028 00:00:01.500\",\"7\",\"0\",\"0\",\"0\"
\"03/01/2028 00:00:01.500\",\"7\",\"\",\"\",\"\"
";

    #[test]
    fn samples_are_rates_times_the_time_since_the_one_before() {
        let load = read_counters(SAMPLE.as_bytes(), "d:").unwrap();
        let [write] = load.writes() else {
            panic!("{:?}", load.writes())
        };
        assert_eq!(
            (write.bytes, write.count, write.latency_ns),
            (2_000_000, 40, Some(2_000_000))
        );
        // A day, a second and a half more: the 29th of February is one.
        assert_eq!(
            load.watched_ns(),
            (86_400 + 2) * 1_000_000_000 + 500_000_000
        );
    }

    #[test]
    fn what_is_no_sample_file_is_refused() {
        let refused = |text: &str, volume: &str, what: &str| {
            let error = read_counters(text.as_bytes(), volume)
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{error}");
        };
        refused(SAMPLE, "E:", "LogicalDisk(E:)");
        refused("", "C:", "no column");
        refused(SAMPLE.lines().next().unwrap(), "C:", "0 samples");
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
