//! Results of live probes as text, JSON, pictures and HTML.

mod causes;
mod command_line;
mod lines;
mod page;
mod phases;
mod table;
mod terminal_heat;
mod text;
mod throughput;

use imports::SampleConditions;
use measure::net::{Fates, PeerRun, RoundTripReport};
use measure::{
    ClockFacts, Comparison, End, FilesPhase, Goal, Group, HeatAxes, HeatMap, HeatScale, Lateness,
    Machine, Measurement, Probe, SettingGrants, Summary, Unavailable, Verdict,
};
use serde::Serialize;
use tables::{Named, utc};

use crate::output::percent;

pub(crate) use causes::Causes;
#[cfg(target_os = "linux")]
pub(crate) use causes::{ExplainedSample, Medians, RecorderCost, Wakes, main_cause};
pub(crate) use lines::sleep_lines;
pub(crate) use page::page;
pub(crate) use terminal_heat::terminal_heat;
pub(crate) use text::text;
pub(crate) use throughput::throughput;

/// JSON output of a measurement: its results and conditions.
#[derive(Serialize)]
pub(crate) struct Report<'m> {
    #[serde(skip)]
    measurement: &'m Measurement,
    probe: &'static str,
    /// Command line of the measurement.
    command: String,
    /// End of the measurement, in UTC.
    ended_utc: String,
    machine: &'m Machine,
    clock: &'m ClockFacts,
    /// Time that the probe itself adds to each sample, in nanoseconds. Every latency includes this time.
    sample_cost_ns: Option<f64>,
    settings: &'m [SettingGrants],
    unavailable: &'m [Unavailable],
    end: End,
    results: Vec<Outcome<'m>>,
    /// Numbers of packets that were answered, lost, or not sent, one entry per run.
    #[serde(skip_serializing_if = "<[Fates]>::is_empty")]
    fates: &'m [Fates],
    /// Results of another program that was run for comparison, one entry per run.
    #[serde(skip_serializing_if = "<[PeerRun]>::is_empty")]
    peer: &'m [PeerRun],
    notes: &'m [String],
    /// Causes of late samples, if they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'m Causes>,
}

/// Results of one method under one setting.
#[derive(Serialize)]
struct Outcome<'m> {
    method: &'m str,
    setting: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    runs: usize,
    latency: Summary,
    /// Summary of the delays between intended and actual starts of samples.
    start_delay: Summary,
    pacing: Lateness,
    /// Comparison with a reference: the same method under the first setting. If there is only one setting,
    /// the reference is the first method that has the same phase, request, size and pace. `None` if this
    /// outcome is the reference.
    compared: Option<MedianComparison<'m>>,
}

/// Comparison of the medians of one method's runs with the medians of its reference.
#[derive(Serialize)]
struct MedianComparison<'m> {
    with: Reference<'m>,
    #[serde(flatten)]
    comparison: Option<Comparison>,
    /// Smallest change that matters, as a fraction of the reference's median.
    margin: f64,
    verdict: Option<Verdict>,
    /// Reason why the method was not compared; `None` if it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

/// Method and setting with which another method or setting is compared.
#[derive(Serialize)]
struct Reference<'m> {
    method: &'m str,
    setting: &'m str,
}

impl<'m> Report<'m> {
    /// Returns the conditions that a file of samples keeps.
    pub(crate) fn conditions(&self) -> SampleConditions {
        let machine = self.machine;
        SampleConditions {
            computer: machine.name.clone(),
            cpu: machine.cpu.clone(),
            cpus: machine.cpus.map(|cpus| cpus as u64),
            system: machine.kernel.clone(),
            command: Some(self.command.clone()),
            ended_utc: Some(self.ended_utc.clone()),
            until_sure: matches!(self.measurement.goal, Some(Goal::Sure(_))),
        }
    }

    /// Summarises a measurement.
    pub(crate) fn new(measurement: &'m Measurement) -> Report<'m> {
        let groups = measurement.groups();
        Report {
            measurement,
            probe: measurement.probe.name(),
            command: command_line::words(std::env::args_os()),
            ended_utc: utc(now()),
            machine: &measurement.machine,
            clock: &measurement.clock,
            sample_cost_ns: measurement.sample_cost_ns,
            settings: &measurement.settings,
            unavailable: &measurement.unavailable,
            end: measurement.end,
            results: (groups.iter())
                .map(|group| outcome(group, &groups, measurement.goal))
                .collect(),
            fates: &[],
            peer: &[],
            notes: &measurement.notes,
            why: None,
        }
    }

    /// Adds the causes of late samples.
    #[must_use]
    pub(crate) fn with_causes(mut self, why: Option<&'m Causes>) -> Report<'m> {
        self.why = why;
        self
    }

    /// Summarises a measurement of round trips.
    pub(crate) fn of_round_trips(report: &'m RoundTripReport) -> Report<'m> {
        Report {
            fates: &report.fates,
            peer: &report.peer,
            ..Report::new(&report.measurement)
        }
    }

    /// Returns the summarised measurement.
    pub(crate) fn measurement(&self) -> &'m Measurement {
        self.measurement
    }
}

fn outcome<'m>(group: &Group<'m>, all: &[Group<'m>], goal: Option<Goal>) -> Outcome<'m> {
    let series = group.first;
    Outcome {
        method: &series.method,
        setting: &series.setting,
        phase: series.phase.as_deref(),
        requested_ns: series.requested_ns,
        size_bytes: series.size_bytes,
        runs: group.runs.len(),
        latency: group.latencies(),
        start_delay: group.starts(),
        pacing: group.lateness(),
        compared: group
            .reference(all)
            .map(|reference| MedianComparison::new(group, reference, goal)),
    }
}

impl<'m> MedianComparison<'m> {
    fn new(group: &Group<'m>, reference: &Group<'m>, goal: Option<Goal>) -> MedianComparison<'m> {
        let comparison = group.compared_to(reference, goal);
        let margin = Goal::margin(goal);
        MedianComparison {
            with: Reference {
                method: &reference.first.method,
                setting: &reference.first.setting,
            },
            comparison: comparison.ok(),
            margin,
            verdict: (comparison.ok()).map(|comparison| comparison.verdict(margin)),
            why_not: comparison.err().map(|why| why.to_string()),
        }
    }

    /// Formats the comparison as a table cell.
    fn words(&self) -> String {
        let comparison = self.comparison.as_ref();
        comparison.map_or_else(|| "not compared".to_owned(), |it| in_words(it, self.margin))
    }
}

/// Formats a comparison as text: the lower and upper bound of the ratio. If the comparison shows a
/// difference, the ratio itself comes first.
fn in_words(comparison: &Comparison, margin: f64) -> String {
    let [centre, low, high] = {
        let ratio = comparison.ratio;
        [ratio.centre, ratio.low, ratio.high].map(ratio_text)
    };
    match comparison.verdict(margin) {
        Verdict::Same => format!("the same within {} ({low} to {high})", percent(margin)),
        Verdict::Unknown => format!("unknown ({low} to {high})"),
        _ => format!("{centre} ({low} to {high})"),
    }
}

/// Formats a ratio with two decimals, or with more if a ratio near 1 would be rounded to 1.
fn ratio_text(ratio: f64) -> String {
    let mut texts = (2..=6).map(|digits| format!("{ratio:.digits$}"));
    let tells = |text: &String| ratio == 1.0 || text.parse() != Ok(1.0);
    texts.find(tells).unwrap_or_else(|| format!("{ratio:.6}"))
}

/// Returns the current time in nanoseconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Number of columns and number of rows of each heat map in a picture.
const PICTURE: (usize, usize) = (120, 80);

/// Returns the axes and the heat maps of all methods and settings, in the size for pictures.
pub(crate) fn heat_maps(measurement: &Measurement, scale: HeatScale) -> (HeatAxes, Vec<HeatMap>) {
    maps(&measurement.groups(), scale, PICTURE)
}

fn maps(
    groups: &[Group<'_>],
    scale: HeatScale,
    (columns, rows): (usize, usize),
) -> (HeatAxes, Vec<HeatMap>) {
    // For files, only maps of single reads are drawn, because the other phases have one sample per run.
    let is_drawn = |group: &&Group<'_>| {
        let result = group.first;
        result.probe != Probe::Files || result.phase.as_deref() == Some(FilesPhase::EachRead.name())
    };
    let groups: Vec<Group<'_>> = groups.iter().filter(is_drawn).cloned().collect();
    let axes = HeatAxes::around(&groups, scale, columns, rows);
    let has_several = groups
        .iter()
        .any(|group| group.first.setting != groups[0].first.setting);
    let title = |group: &Group<'_>| {
        let result = group.first;
        let phase = result.phase.as_ref().map(|phase| format!(" {phase}"));
        let mut title = format!("{}{}", result.method, phase.unwrap_or_default());
        if has_several {
            title = format!("{title}: {}", result.setting);
        }
        title
    };
    let maps = groups.iter().map(|group| axes.map(group, &title(group)));
    let maps = maps.collect();
    (axes, maps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_near_1_have_more_digits() {
        let texts = [0.474, 0.998, 0.9996, 1.004, 1.0, 1.25, 0.999_999_9].map(ratio_text);
        assert_eq!(
            texts,
            [
                "0.47", "0.998", "0.9996", "1.004", "1.00", "1.25", "1.000000"
            ]
        );
    }
}
