//! Samples and their table.

use tables::{LatencySamples, Probe, SampleOutcome};

use crate::{Lateness, Percentiles};

/// A sample. Times are in nanoseconds since the start of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Start of the sample.
    pub start_ns: i64,
    /// Intended start of the sample.
    pub intended_start_ns: i64,
    /// Duration or lateness. `None` if the operation did not end, or if the clock went back.
    pub latency_ns: Option<i64>,
    /// Outcome of the measured operation.
    pub outcome: SampleOutcome,
}

impl Sample {
    /// Returns the sample of an operation, with its duration as latency. If the clock went back,
    /// the sample has no latency, and its outcome reports the reason.
    pub fn timed(intended_start_ns: i64, start_ns: i64, end_ns: i64) -> Sample {
        let (latency_ns, outcome) = match end_ns.checked_sub(start_ns) {
            Some(ns @ 0..) => (Some(ns), SampleOutcome::Done),
            _ => (None, SampleOutcome::ClockWentBack),
        };
        Sample {
            start_ns,
            intended_start_ns,
            latency_ns,
            outcome,
        }
    }

    /// Returns the sample of an operation that did not end.
    pub fn without_end(intended_start_ns: i64, start_ns: i64, outcome: SampleOutcome) -> Sample {
        Sample {
            start_ns,
            intended_start_ns,
            latency_ns: None,
            outcome,
        }
    }
}

/// Samples of one run, which measures one method under one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Probe that took the samples.
    pub probe: Probe,
    /// Name of the method.
    pub method: String,
    /// Description of the setting.
    pub setting: String,
    /// Phase of the operation, if the probe times several phases.
    pub phase: Option<String>,
    /// Number of the run, from 0.
    pub run: u32,
    /// Requested duration of a sleep.
    pub requested_ns: Option<i64>,
    /// Granularity of the system's timers in nanoseconds: the timer resolution on Windows, the
    /// thread's timer slack on Linux.
    pub resolution_ns: Option<i64>,
    /// Bytes per sample.
    pub size_bytes: Option<u64>,
    /// Samples, in order.
    pub samples: Vec<Sample>,
    /// Intended time between sample starts, if the starts were paced.
    pub interval_ns: Option<i64>,
}

impl Series {
    /// Returns a series without samples.
    pub fn new(probe: Probe, method: &str, setting: &str, run: u32) -> Series {
        Series {
            probe,
            method: method.to_owned(),
            setting: setting.to_owned(),
            phase: None,
            run,
            requested_ns: None,
            resolution_ns: None,
            size_bytes: None,
            samples: Vec::new(),
            interval_ns: None,
        }
    }

    /// Returns the lateness of the sample starts. The lateness is zero if the starts were not paced.
    pub fn lateness(&self) -> Lateness {
        let delays = self.samples.iter();
        let delays = delays.map(|sample| sample.start_ns.saturating_sub(sample.intended_start_ns));
        let lateness = |interval_ns| Lateness::from_delays(delays, interval_ns);
        self.interval_ns.map(lateness).unwrap_or_default()
    }

    /// Returns the distribution of the latencies.
    pub fn percentiles(&self) -> Percentiles {
        self.samples.iter().collect()
    }
}

/// Returns the samples of all series as a table, in order of their start.
pub(crate) fn table<'s>(series: impl Iterator<Item = &'s Series>) -> LatencySamples {
    let mut rows: Vec<(&Series, u64, &Sample)> = series
        .flat_map(|series| (0..).zip(&series.samples).map(move |(n, s)| (series, n, s)))
        .collect();
    rows.sort_by_key(|(_, _, sample)| sample.start_ns);
    let mut table = LatencySamples::default();
    for (series, sequence, sample) in rows {
        table.start_ns.push(sample.start_ns);
        table.intended_start_ns.push(sample.intended_start_ns);
        table.latency_ns.push(sample.latency_ns);
        table.probe.0.push(series.probe);
        table.method.push(Some(&series.method));
        table.setting.push(Some(&series.setting));
        table.phase.push(series.phase.as_deref());
        table.run.push(series.run);
        table.sequence.push(sequence);
        table.requested_ns.push(series.requested_ns);
        table.resolution_ns.push(series.resolution_ns);
        table.size_bytes.push(series.size_bytes);
        table.outcome.0.push(sample.outcome);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back_gives_no_latency() {
        assert_eq!(Sample::timed(0, 5, 9).latency_ns, Some(4));
        let back = Sample::timed(0, 9, 5);
        assert_eq!(
            (back.latency_ns, back.outcome),
            (None, SampleOutcome::ClockWentBack)
        );
    }

    #[test]
    fn rows_are_sorted_by_start() {
        let mut first = Series::new(Probe::Sleep, "nanosleep", "usual", 0);
        first.requested_ns = Some(1_000);
        first.samples = vec![Sample::timed(0, 1, 2), Sample::timed(20, 21, 25)];
        let mut second = Series::new(Probe::Sleep, "timerfd", "usual", 0);
        second.samples = vec![Sample::without_end(10, 11, SampleOutcome::Lost)];
        let table = table([first, second].iter());
        assert_eq!(table.start_ns, [1, 11, 21]);
        assert_eq!(table.sequence, [0, 0, 1]);
        let latencies: Vec<_> = table.latency_ns.iter().collect();
        assert_eq!(latencies, [Some(1), None, Some(4)]);
        assert_eq!(table.method.get(1), Some("timerfd"));
        let batch = table.into_batch();
        assert_eq!(batch.num_rows(), 3);
        assert_eq!(batch.num_columns(), LatencySamples::schema().columns.len());
    }
}
