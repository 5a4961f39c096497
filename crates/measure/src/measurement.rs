//! Result of a measuring command, with its conditions.

use std::collections::BTreeSet;

use tables::{LatencySamples, Probe};

use crate::compare::{Comparison, Incomparable, compare};
use crate::{ClockFacts, End, Grant, Lateness, Machine, Percentiles, Series};

/// Result of a measuring command, with its conditions.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Probe that took the samples.
    pub probe: Probe,
    /// Machine on which the command ran.
    pub machine: Machine,
    /// The clock that timed the samples.
    pub clock: ClockFacts,
    /// Mean duration of taking a sample, which is part of every latency.
    pub sample_cost_ns: Option<f64>,
    /// Scheduling requests of each setting, granted or refused.
    pub settings: Vec<SettingGrants>,
    /// Requested methods that are not available.
    pub unavailable: Vec<Unavailable>,
    /// Runs of all methods and settings, with their samples.
    pub series: Vec<Series>,
    /// Reason why the measurement ended.
    pub end: End,
    /// Caveats, one sentence each.
    pub notes: Vec<String>,
}

/// Scheduling requests of one setting, granted or refused.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SettingGrants {
    /// Name of the setting, as in [`Series::setting`].
    pub setting: String,
    /// Carriers of packets for which the grants hold; empty if they hold for everything measured
    /// under the setting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// One grant per request.
    pub grants: Vec<Grant>,
}

/// A method that is not available.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unavailable {
    /// Name of the method.
    pub method: String,
    /// Reason.
    pub why: String,
}

impl Unavailable {
    /// Joins the names of several methods, and the reasons why they are not available, into one
    /// text.
    pub(crate) fn list(several: &[Unavailable]) -> String {
        let each = several.iter();
        let each: Vec<String> = each
            .map(|one| format!("{} ({})", one.method, one.why))
            .collect();
        each.join(", ")
    }
}

/// Runs of one method under one setting, with the same phase, requested duration and size.
#[derive(Clone, Debug)]
pub struct Group<'m> {
    /// First run. All runs of the group have its names.
    pub first: &'m Series,
    /// All runs, in order.
    pub runs: Vec<&'m Series>,
}

impl Measurement {
    /// Returns all samples as a table, in order of their start.
    pub fn table(&self) -> LatencySamples {
        crate::sample::table(self.series.iter())
    }

    /// Groups the runs by method, setting, phase, requested duration and size, in order of first
    /// appearance.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for series in &self.series {
            match groups.iter_mut().find(|group| group.holds(series)) {
                Some(group) => group.runs.push(series),
                None => groups.push(Group {
                    first: series,
                    runs: vec![series],
                }),
            }
        }
        groups
    }
}

impl Group<'_> {
    fn holds(&self, series: &Series) -> bool {
        let of = |series: &Series| (series.requested_ns, series.size_bytes);
        let first = self.first;
        first.method == series.method
            && first.setting == series.setting
            && first.phase == series.phase
            && of(first) == of(series)
    }

    /// Returns the distribution of the latencies of all runs.
    pub fn percentiles(&self) -> Percentiles {
        self.runs.iter().flat_map(|run| &run.samples).collect()
    }

    /// Returns the distribution of the start delays, which is the jitter of the pacing.
    pub fn starts(&self) -> Percentiles {
        let samples = self.runs.iter().flat_map(|run| &run.samples);
        Percentiles::from_latencies(
            samples.map(|sample| sample.start_ns.checked_sub(sample.intended_start_ns)),
        )
    }

    /// Returns the lateness of the sample starts of all runs.
    pub fn lateness(&self) -> Lateness {
        let mut all = Lateness::default();
        self.runs.iter().for_each(|run| all.merge(run.lateness()));
        all
    }

    /// Compares the median of each run with the median of the run with the same number in another
    /// group.
    ///
    /// # Errors
    /// Returns an error if the groups share too few run numbers, or if a median is not positive.
    pub fn compared_to(&self, other: &Group<'_>) -> Result<Comparison, Incomparable> {
        let medians = |group: &Group<'_>, number: u32| {
            let run = group.runs.iter().find(|run| run.run == number)?;
            run.percentiles().median().map(|ns| ns as f64)
        };
        let numbers: BTreeSet<u32> = self.runs.iter().map(|run| run.run).collect();
        let pairs: Vec<(f64, f64)> = numbers
            .into_iter()
            .filter_map(|number| Some((medians(self, number)?, medians(other, number)?)))
            .collect();
        compare(&pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, ClockSource, Sample, Verdict};

    #[test]
    fn runs_are_paired_by_their_number() {
        let mut series = Vec::new();
        for run in 0..8 {
            // The machine gets slower from run to run; one method always takes twice as long.
            let speed = 1_000 * i64::from(run + 1);
            for (method, factor) in [("a", 1), ("b", 2)] {
                let mut of = Series::new(Probe::Sleep, method, "usual", run);
                of.samples = vec![Sample::timed(0, 0, speed * factor); 3];
                // One sample of each run starts 10 ns after its intended start, which is one
                // interval.
                of.interval_ns = Some(10);
                of.samples[1].intended_start_ns = -10;
                series.push(of);
            }
        }
        let measurement = Measurement {
            probe: Probe::Sleep,
            machine: Machine::detect(),
            clock: ClockFacts::measure(&Clock::best(), ClockSource::BEST.name()),
            sample_cost_ns: None,
            settings: vec![],
            unavailable: vec![],
            series,
            end: End::Rounds,
            notes: vec![],
        };
        let groups = measurement.groups();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[1].lateness().missed, 8);
        assert_eq!(groups[0].percentiles().count(), 24);
        let comparison = groups[1].compared_to(&groups[0]).unwrap();
        assert_eq!(comparison.pairs, 8);
        assert_eq!(comparison.verdict(), Verdict::Higher);
        let ratio = comparison.ratio;
        // Medians are exact to 3 digits, so the ratio may differ slightly from 2.
        assert!((ratio.low - 2.0).abs() < 0.004 && (ratio.high - 2.0).abs() < 0.004);
        assert_eq!(measurement.table().len(), 48);
    }
}
