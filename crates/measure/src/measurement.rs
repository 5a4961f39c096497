//! All that one command measured, and under what.

use std::collections::BTreeSet;

use tables::{LatencySamples, Probe};

use crate::compare::{Comparison, Incomparable, compare};
use crate::{ClockFacts, End, Grant, Lateness, Machine, Percentiles, Series};

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What was probed.
    pub probe: Probe,
    /// The machine.
    pub machine: Machine,
    /// The clock that it was timed by.
    pub clock: ClockFacts,
    /// What the probe itself needs for a sample, which is part of every latency; the mean.
    pub sample_cost_ns: Option<f64>,
    /// What of each setting was granted.
    pub settings: Vec<SettingGrants>,
    /// Methods that were asked for and are not there.
    pub unavailable: Vec<Unavailable>,
    /// The runs.
    pub series: Vec<Series>,
    /// Why it ended.
    pub end: End,
    /// What else whoever reads the numbers should know; each a sentence.
    pub notes: Vec<String>,
}

/// What of a setting the system granted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SettingGrants {
    /// The setting, as [`Series::setting`] has it.
    pub setting: String,
    /// What was granted it so, where that is not all that was measured under the setting: carriers of
    /// packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Each wish.
    pub grants: Vec<Grant>,
}

/// A method that cannot be measured here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unavailable {
    /// Its name.
    pub method: String,
    /// Why: what is missing.
    pub why: String,
}

impl Unavailable {
    /// Several of them in a sentence.
    pub(crate) fn list(several: &[Unavailable]) -> String {
        let each = several.iter();
        let each: Vec<String> = each
            .map(|one| format!("{} ({})", one.method, one.why))
            .collect();
        each.join(", ")
    }
}

/// The runs of one method under one setting, of one phase and size.
#[derive(Clone, Debug)]
pub struct Group<'m> {
    /// The first of them, which has the names.
    pub first: &'m Series,
    /// All of them, in the order they were made.
    pub runs: Vec<&'m Series>,
}

impl Measurement {
    /// All samples as a table, in order of their start.
    pub fn table(&self) -> LatencySamples {
        crate::sample::table(self.series.iter())
    }

    /// The runs by what they have in common, in the order they first appeared.
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

    /// How the latencies of all runs are spread.
    pub fn percentiles(&self) -> Percentiles {
        self.runs.iter().flat_map(|run| &run.samples).collect()
    }

    /// How much later than intended its samples began: the jitter of the pacing.
    pub fn starts(&self) -> Percentiles {
        let mut late = Percentiles::default();
        for sample in self.runs.iter().flat_map(|run| &run.samples) {
            late.add(sample.start_ns.checked_sub(sample.intended_start_ns));
        }
        late
    }

    /// How well the pacing of all runs was kept.
    pub fn lateness(&self) -> Lateness {
        let mut all = Lateness::default();
        self.runs.iter().for_each(|run| all.merge(run.lateness()));
        all
    }

    /// How its medians compare to another group's, run by run.
    ///
    /// # Errors
    /// If there are too few runs that both have, or a median is 0 or less.
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
            // The machine is slower from run to run; one method is always twice the other.
            let speed = 1_000 * i64::from(run + 1);
            for (method, factor) in [("a", 1), ("b", 2)] {
                let mut of = Series::new(Probe::Sleep, method, "usual", run);
                of.samples = vec![Sample::timed(0, 0, speed * factor); 3];
                // One of each run began a slot too late.
                of.interval_ns = Some(10);
                of.samples[1].intended_start_ns = -10;
                series.push(of);
            }
        }
        let measurement = Measurement {
            probe: Probe::Sleep,
            machine: Machine::here(),
            clock: ClockFacts::of(&Clock::best(), ClockSource::BEST.name()),
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
        // Medians are exact to 3 digits.
        assert!((ratio.low - 2.0).abs() < 0.004 && (ratio.high - 2.0).abs() < 0.004);
        assert_eq!(measurement.table().len(), 48);
    }
}
