//! Measurements, their groups of runs, and comparisons of groups.

use std::collections::BTreeSet;

use statistics::counts::Count;
use statistics::dependence::{independent_by_runs, samples_per_independent_at};
use tables::{LatencySamples, Probe};

use crate::compare::{Comparison, Variant, compare, compare_so_far, reference};
use crate::{
    ClockFacts, End, Goal, Grant, Incomparable, Lateness, Machine, Percentiles, Sample, Series,
    Summary,
};

/// Result of a measuring command, with its conditions.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Probe that took the samples.
    pub probe: Probe,
    /// Machine on which the command ran.
    pub machine: Machine,
    /// The clock that timed the samples.
    pub clock: ClockFacts,
    /// Mean cost of taking a sample in nanoseconds. Every latency includes this cost.
    pub sample_cost_ns: Option<f64>,
    /// Scheduling requests of each setting, granted or refused.
    pub settings: Vec<SettingGrants>,
    /// Requested methods that are not available.
    pub unavailable: Vec<Unavailable>,
    /// Runs of all methods and settings, with their samples.
    pub series: Vec<Series>,
    /// Condition under which the measurement may end early.
    pub goal: Option<Goal>,
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
    /// Carriers of packets to which the grants apply. If the list is empty, the grants apply to everything
    /// that was measured under the setting.
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
    /// Reason why the method is not available.
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
    /// First run. All runs of the group have the same method, setting, phase, requested duration
    /// and size.
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

/// Properties of a group. Groups that differ in one of them cannot be compared.
#[derive(PartialEq)]
struct Load<'g> {
    phase: Option<&'g str>,
    requested_ns: Option<i64>,
    size_bytes: Option<u64>,
    /// State of the file cache. The states are measured one after the other. Therefore only runs in the same
    /// state are close to each other in time.
    cache: Option<&'g str>,
    /// Pace of packets, which is a part of the method's name: `udp 10000/s`.
    pace: Option<&'g str>,
}

impl Group<'_> {
    fn holds(&self, series: &Series) -> bool {
        let key = |series: &Series| (series.requested_ns, series.size_bytes);
        let first = self.first;
        first.method == series.method
            && first.setting == series.setting
            && first.phase == series.phase
            && key(first) == key(series)
    }

    /// Returns the reference group, with which this group is compared, from `all` groups of the measurement. The
    /// reference has the same phase, requested duration, size, cache state and pace as this group. If such groups
    /// have several settings, the reference is the group of the same method under the first setting. Otherwise, the
    /// reference is the group of the first method. Returns `None` for the reference itself.
    pub fn reference<'g, 'm>(&self, all: &'g [Group<'m>]) -> Option<&'g Group<'m>> {
        let variants: Vec<_> = all.iter().map(Group::variant).collect();
        let index = all
            .iter()
            .position(|it| std::ptr::eq(it.first, self.first))?;
        reference(&variants, index).map(|reference| &all[reference])
    }

    fn variant(&self) -> Variant<Load<'_>, &str, &str> {
        let group = self.first;
        let is_paced = group.probe == Probe::Net;
        let pace = group.method.split_once(' ').filter(|_| is_paced);
        Variant {
            load: Load {
                phase: group.phase.as_deref(),
                requested_ns: group.requested_ns,
                size_bytes: group.size_bytes,
                cache: (group.probe == Probe::Files).then_some(group.setting.as_str()),
                pace: pace.map(|(_, pace)| pace),
            },
            method: &group.method,
            setting: &group.setting,
        }
    }

    /// Returns the distribution of the latencies of all runs.
    pub fn percentiles(&self) -> Percentiles {
        self.runs.iter().flat_map(|run| &run.samples).collect()
    }

    /// Returns the usual statistics of the latencies of all runs.
    pub fn latencies(&self) -> Summary {
        self.summary(|sample| sample.latency_ns)
    }

    /// Returns the usual statistics of the start delays, which are the jitter of the pacing.
    pub fn starts(&self) -> Summary {
        self.summary(|sample| sample.start_ns.checked_sub(sample.intended_start_ns))
    }

    /// Returns the statistics of one value of each sample. Samples of a run depend on each other, if they are
    /// neighbours or if runs differ, so they count as fewer independent samples.
    fn summary(&self, value: impl Fn(&Sample) -> Option<i64>) -> Summary {
        let samples = self.runs.iter().flat_map(|run| &run.samples);
        let all = Percentiles::from_latencies(samples.map(&value));
        all.summary(|threshold| {
            // Many samples may be equal to the quantile, such as those of one batch of completions. A quantile is exact
            // to 3 digits, so samples a little below it may be equal, too.
            let below = (threshold - threshold.abs() / 1_024 - 1) as f64;
            let (mut within, mut late) = (0.0, Vec::new());
            for run in &self.runs {
                let known = run.samples.iter().filter_map(&value);
                let known: Vec<f64> = known.map(|ns| ns as f64).collect();
                if known.is_empty() {
                    continue;
                }
                within += known.len() as f64 / samples_per_independent_at(&known, below);
                late.push(Count {
                    events: known.iter().filter(|ns| **ns > below).count() as u64,
                    exposure: known.len() as f64,
                });
            }
            let between = independent_by_runs(&late);
            between.map_or(within, |between| within.min(between)) as u64
        })
    }

    /// Returns the lateness of the sample starts of all runs.
    pub fn lateness(&self) -> Lateness {
        let mut all = Lateness::default();
        self.runs.iter().for_each(|run| all.merge(run.lateness()));
        all
    }

    /// Compares the median of each run with the median of the run with the same number in another group. `goal` is
    /// the goal of the measurement. If it is [`Goal::Sure`], the measurement has looked at the data repeatedly, and
    /// the confidence interval takes this into account.
    ///
    /// # Errors
    /// Returns an error if the groups share too few run numbers, or if a median is not positive.
    pub fn compared_to(
        &self,
        other: &Group<'_>,
        goal: Option<Goal>,
    ) -> Result<Comparison, Incomparable> {
        let medians = |group: &Group<'_>, number: u32| {
            let run = group.runs.iter().find(|run| run.run == number)?;
            run.percentiles().median().map(|ns| ns as f64)
        };
        let numbers: BTreeSet<u32> = self.runs.iter().map(|run| run.run).collect();
        let pairs: Vec<(f64, f64)> = numbers
            .into_iter()
            .filter_map(|number| Some((medians(self, number)?, medians(other, number)?)))
            .collect();
        match goal {
            Some(Goal::Sure(_)) => compare_so_far(&pairs),
            _ => compare(&pairs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, ClockSource, Sample};
    use statistics::Verdict;

    fn measurement(series: Vec<Series>) -> Measurement {
        Measurement {
            probe: Probe::Sleep,
            machine: Machine::detect(),
            clock: ClockFacts::measure(&Clock::best(), ClockSource::BEST.name()),
            sample_cost_ns: None,
            settings: vec![],
            unavailable: vec![],
            series,
            goal: None,
            end: End::Rounds,
            notes: vec![],
        }
    }

    /// Returns 8 runs of each entry: method, setting, and latency.
    fn runs(probe: Probe, entries: &[(&str, &str, i64)]) -> Vec<Series> {
        let of_run = |run: u32| {
            entries.iter().map(move |(method, setting, latency_ns)| {
                let mut series = Series::new(probe, method, setting, run);
                series.samples = vec![Sample::timed(0, 0, *latency_ns); 3];
                series
            })
        };
        (0..8).flat_map(of_run).collect()
    }

    /// Returns the name of each group, the name of its reference, and the ratio of their medians.
    fn compared(series: Vec<Series>) -> Vec<(String, Option<(String, f64)>)> {
        let measurement = measurement(series);
        let groups = measurement.groups();
        let name = |group: &Group<'_>| format!("{}, {}", group.first.method, group.first.setting);
        let with = |group: &Group<'_>| {
            let reference = group.reference(&groups)?;
            let ratio = group.compared_to(reference, None).unwrap().ratio.centre;
            Some((name(reference), (ratio * 100.0).round() / 100.0))
        };
        groups
            .iter()
            .map(|group| (name(group), with(group)))
            .collect()
    }

    #[test]
    fn a_second_setting_is_compared_with_the_same_method() {
        let compared = compared(runs(
            Probe::Sleep,
            &[
                ("nanosleep", "usual", 80_000),
                ("nanosleep", "slack", 20_000),
                ("timerfd", "usual", 30_000),
                ("timerfd", "slack", 30_000),
            ],
        ));
        let with = |name: &str, ratio| Some((name.to_owned(), ratio));
        let references: Vec<_> = compared.into_iter().map(|(_, with)| with).collect();
        assert_eq!(
            references,
            [
                None,
                with("nanosleep, usual", 0.25),
                None,
                with("timerfd, usual", 1.0)
            ]
        );
    }

    #[test]
    fn methods_of_one_setting_are_compared_with_the_first_of_their_pace() {
        let compared = compared(runs(
            Probe::Net,
            &[
                ("udp 1000/s", "usual", 10_000),
                ("pgm 1000/s", "usual", 20_000),
                ("udp ping-pong", "usual", 5_000),
                ("pgm ping-pong", "usual", 20_000),
            ],
        ));
        let with = |name: &str, ratio| Some((name.to_owned(), ratio));
        let references: Vec<_> = compared.into_iter().map(|(_, with)| with).collect();
        assert_eq!(
            references,
            [
                None,
                with("udp 1000/s, usual", 2.0),
                None,
                with("udp ping-pong, usual", 4.0)
            ]
        );
    }

    #[test]
    fn methods_that_read_files_are_compared_within_their_state_of_the_cache() {
        let compared = compared(runs(
            Probe::Files,
            &[
                ("pread", "cached", 10_000),
                ("mmap", "cached", 5_000),
                ("pread", "dropped", 100_000),
                ("mmap", "dropped", 200_000),
            ],
        ));
        let ratios: Vec<_> = compared
            .into_iter()
            .map(|(_, with)| with.map(|(_, ratio)| ratio))
            .collect();
        assert_eq!(ratios, [None, Some(0.5), None, Some(2.0)]);
    }

    /// Returns the summary of 8 runs of 300 samples each. `latency_ns` returns the latency of a sample of a run.
    fn summary(latency_ns: impl Fn(i64, i64) -> i64) -> Summary {
        let of_run = |run: u32| {
            let mut series = Series::new(Probe::Files, "io_uring", "cached", run);
            let samples = (0..300).map(|sample| latency_ns(i64::from(run), sample));
            series.samples = samples.map(|ns| Sample::timed(0, 0, ns)).collect();
            series
        };
        let measurement = measurement((0..8).map(of_run).collect());
        measurement.groups()[0].latencies()
    }

    /// Checks runs whose samples are equal. The slowest run alone decides the 99 % quantile, and one run has no bounds.
    #[test]
    fn runs_of_equal_samples_have_no_bounds_of_high_quantiles() {
        let constants = summary(|run, _| 1_000_000 * (run + 1));
        assert_eq!((constants.p99_ns, constants.p99_bounds_ns), (None, None));
        // Each run has 3 batches of 100 completions, which end within some nanoseconds.
        let batches =
            summary(|run, sample| 1_000_000 * (sample / 100 + 1) + 40_000 * run + sample % 100);
        assert_eq!((batches.p99_ns, batches.p99_bounds_ns), (None, None));
        // Independent samples have bounds.
        let mut rng = testdata::Rng(7);
        let values: Vec<i64> = (0..2_400).map(|_| rng.below(1_000_000) as i64).collect();
        let independent = summary(|run, sample| values[(300 * run + sample) as usize]);
        let [low, high] = independent.p99_bounds_ns.unwrap();
        assert!(low < 990_000 && 990_000 < high, "{independent:?}");
    }

    #[test]
    fn runs_are_paired_by_their_number() {
        let mut series = Vec::new();
        for run in 0..8 {
            // The machine gets slower from run to run. One method always takes twice as long as the other
            // method.
            let speed = 1_000 * i64::from(run + 1);
            for (method, factor) in [("a", 1), ("b", 2)] {
                let mut one = Series::new(Probe::Sleep, method, "usual", run);
                one.samples = vec![Sample::timed(0, 0, speed * factor); 3];
                // One sample of each run starts 10 ns after its intended start. The interval is also 10 ns,
                // so this sample counts as missed.
                one.interval_ns = Some(10);
                one.samples[1].intended_start_ns = -10;
                series.push(one);
            }
        }
        let measurement = measurement(series);
        let groups = measurement.groups();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[1].lateness().missed, 8);
        assert_eq!(groups[0].percentiles().count(), 24);
        let comparison = groups[1].compared_to(&groups[0], None).unwrap();
        assert_eq!(comparison.pairs, 8);
        assert_eq!(comparison.verdict(0.02), Verdict::Higher);
        let ratio = comparison.ratio;
        // Medians are exact to 3 digits, so the ratio may differ slightly from 2.
        assert!((ratio.low - 2.0).abs() < 0.004 && (ratio.high - 2.0).abs() < 0.004);
        assert_eq!(measurement.table().len(), 48);
    }
}
