//! What a live probe measured, as text, JSON, pictures and a page: the same for every probe.

mod lines;
mod page;
mod phases;
mod terminal_heat;
mod text;
mod throughput;

use measure::net::{Fates, PeerRun, RoundTripReport};
use measure::{
    ClockFacts, Comparison, End, FilesPhase, Group, HeatAxes, HeatMap, HeatScale, Lateness,
    Machine, Measurement, Probe, SettingGrants, Summary, Unavailable, Verdict,
};
use serde::Serialize;
use tables::Named;

pub(crate) use lines::sleep_lines;
pub(crate) use page::page;
pub(crate) use terminal_heat::terminal_heat;
pub(crate) use text::text;
pub(crate) use throughput::throughput;

/// A measurement, summed up.
#[derive(Serialize)]
pub(crate) struct Report<'m> {
    #[serde(skip)]
    measurement: &'m Measurement,
    probe: &'static str,
    machine: &'m Machine,
    clock: &'m ClockFacts,
    /// Of the probe itself, for a sample; it is part of every latency.
    sample_cost_ns: Option<f64>,
    settings: &'m [SettingGrants],
    unavailable: &'m [Unavailable],
    end: End,
    results: Vec<Outcome<'m>>,
    /// What became of packets, run by run.
    #[serde(skip_serializing_if = "<[Fates]>::is_empty")]
    fates: &'m [Fates],
    /// What another program measured beside, run by run.
    #[serde(skip_serializing_if = "<[PeerRun]>::is_empty")]
    peer: &'m [PeerRun],
    notes: &'m [String],
}

/// Of one method under one setting.
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
    /// How much later than intended samples began.
    start_delay: Summary,
    pacing: Lateness,
    /// To the first of the same phase, request, size and pace; none of the first itself.
    compared: Option<Compared>,
}

/// How a method's medians compare to the first's.
#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    comparison: Option<Comparison>,
    verdict: Option<Verdict>,
    /// Why nothing can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

impl<'m> Report<'m> {
    /// Sums a measurement up.
    pub(crate) fn of(measurement: &'m Measurement) -> Report<'m> {
        let groups = measurement.groups();
        Report {
            measurement,
            probe: measurement.probe.name(),
            machine: &measurement.machine,
            clock: &measurement.clock,
            sample_cost_ns: measurement.sample_cost_ns,
            settings: &measurement.settings,
            unavailable: &measurement.unavailable,
            end: measurement.end,
            results: groups.iter().map(|group| outcome(group, &groups)).collect(),
            fates: &[],
            peer: &[],
            notes: &measurement.notes,
        }
    }

    /// Sums round trips up.
    pub(crate) fn of_round_trips(report: &'m RoundTripReport) -> Report<'m> {
        Report {
            fates: &report.fates,
            peer: &report.peer,
            ..Report::of(&report.measurement)
        }
    }

    /// What is summed up.
    pub(crate) fn measurement(&self) -> &'m Measurement {
        self.measurement
    }
}

fn outcome<'m>(group: &Group<'m>, all: &[Group<'m>]) -> Outcome<'m> {
    let series = group.first;
    let key = |group: &Group<'_>| {
        let of = group.first;
        // Files under different states of the cache are measured one after the other, so that only
        // runs under the same one were next to each other.
        let setting = (of.probe == Probe::Files).then(|| of.setting.clone());
        // And packets at different paces are different loads: their methods are `udp 10000/s` and the
        // like.
        let pace = (of.probe == Probe::Net)
            .then(|| Some(of.method.split_once(' ')?.1.to_owned()))
            .flatten();
        (
            of.phase.clone(),
            of.requested_ns,
            of.size_bytes,
            setting,
            pace,
        )
    };
    let first = all.iter().find(|other| key(other) == key(group));
    let other = first.filter(|first| !std::ptr::eq(first.first, series));
    Outcome {
        method: &series.method,
        setting: &series.setting,
        phase: series.phase.as_deref(),
        requested_ns: series.requested_ns,
        size_bytes: series.size_bytes,
        runs: group.runs.len(),
        latency: group.percentiles().summary(),
        start_delay: group.starts().summary(),
        pacing: group.lateness(),
        compared: other.map(|other| match group.compared_to(other) {
            Ok(comparison) => Compared {
                comparison: Some(comparison),
                verdict: Some(comparison.verdict()),
                why_not: None,
            },
            Err(why) => Compared {
                comparison: None,
                verdict: None,
                why_not: Some(why.to_string()),
            },
        }),
    }
}

impl Compared {
    /// In words: a ratio only where it is shown that there is a difference.
    fn words(&self) -> String {
        let bounds = |comparison: &Comparison| {
            let ratio = comparison.ratio;
            format!("{:.2} to {:.2}", ratio.low, ratio.high)
        };
        match (&self.comparison, self.verdict) {
            (Some(comparison), Some(Verdict::NoneShown)) => {
                format!("no difference shown ({})", bounds(comparison))
            }
            (Some(comparison), Some(_)) => {
                format!("{:.2} ({})", comparison.ratio.centre, bounds(comparison))
            }
            _ => "not compared".to_owned(),
        }
    }
}

/// The columns and rows of a picture's maps.
const PICTURE: (usize, usize) = (120, 80);

/// The heat maps of all methods and settings, for a picture.
pub(crate) fn heat_maps(measurement: &Measurement, scale: HeatScale) -> (HeatAxes, Vec<HeatMap>) {
    maps(&measurement.groups(), scale, PICTURE)
}

fn maps(
    groups: &[Group<'_>],
    scale: HeatScale,
    (columns, rows): (usize, usize),
) -> (HeatAxes, Vec<HeatMap>) {
    // Of files every single read is drawn: of each part there is one sample a run.
    let is_drawn = |group: &&Group<'_>| {
        let of = group.first;
        of.probe != Probe::Files || of.phase.as_deref() == Some(FilesPhase::EachRead.name())
    };
    let groups: Vec<Group<'_>> = groups.iter().filter(is_drawn).cloned().collect();
    let axes = HeatAxes::around(&groups, scale, columns, rows);
    let has_several = groups
        .iter()
        .any(|group| group.first.setting != groups[0].first.setting);
    let title = |group: &Group<'_>| {
        let of = group.first;
        let phase = of.phase.as_ref().map(|phase| format!(" {phase}"));
        let mut title = format!("{}{}", of.method, phase.unwrap_or_default());
        if has_several {
            title = format!("{title}: {}", of.setting);
        }
        title
    };
    let maps = groups.iter().map(|group| axes.map(group, &title(group)));
    let maps = maps.collect();
    (axes, maps)
}
