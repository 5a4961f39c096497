//! Selection of the measurements that show the effect of changed settings.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_1_SQRT_2;

use statistics::{MARGIN, planning};
use tune::catalogue::{Shown, Times as ShownTimes};

use super::{Change, MeasurePlan, Measurement, NotShown, Probe, Reason, Recording, Times};

/// Data from the user that some measurements need.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Program or module whose times in traces are compared.
    pub row: Option<String>,
    /// Address of the other machine, which receives the packets.
    pub reflector: Option<String>,
    /// Folder with files to read.
    pub folder: Option<String>,
}

/// Number of sleeps in a run. 100 sleeps are enough for a median. On Windows, such a run takes 2 s.
const SLEEPS: usize = 100;

/// Minimum number of received packets in a run. A run sends 10,000 packets.
const PACKETS: usize = 1_000;

/// Number of traces on each side. Fewer traces do not show how much the traces of one side differ by chance.
const TRACES: usize = 3;

/// Length of a trace in seconds.
const SECONDS: f64 = 30.0;

impl MeasurePlan {
    /// Plans the measurements that show the effect of changes. The catalogue of settings states which
    /// measurements these are.
    pub fn of_changes(plan: &tune::plan::Plan, wishes: &Wishes) -> MeasurePlan {
        let mut reasons: BTreeMap<ShownTimes, Vec<Reason>> = BTreeMap::new();
        let mut not_shown = Vec::new();
        for change in &plan.changes {
            let setting = change.setting;
            let why = match (change.has_effect, setting.shows.is_empty()) {
                (Some(false), _) => "This build of Windows does not know the setting.",
                (_, true) => "No measurement of laglab is known to show the effect of the setting.",
                (_, false) => {
                    for Shown { with, why, source } in &setting.shows {
                        reasons.entry(*with).or_default().push(Reason {
                            setting: setting.id.clone(),
                            why: why.clone(),
                            source: source.clone(),
                        });
                    }
                    continue;
                }
            };
            not_shown.push(NotShown {
                setting: setting.id.clone(),
                why: why.to_owned(),
                look_at: setting.evidence.clone(),
            });
        }
        let (mut measurements, mut recordings) = (Vec::new(), Vec::new());
        for (times, reasons) in reasons {
            match times {
                ShownTimes::Sleep => measurements.push(sleep(reasons)),
                ShownTimes::Net => measurements.push(net(wishes, reasons)),
                ShownTimes::Files => measurements.push(files(wishes, reasons)),
                ShownTimes::Ready => {
                    recordings.push(recording(Times::Ready, "cpu", wishes, reasons))
                }
                ShownTimes::Dpcs => recordings.push(recording(Times::Dpcs, "dpc", wishes, reasons)),
                ShownTimes::Isrs => recordings.push(recording(Times::Isrs, "dpc", wishes, reasons)),
            }
        }
        MeasurePlan {
            version: Self::VERSION,
            margin: MARGIN,
            computer: plan.machine.name.clone(),
            changes: (plan.changes.iter())
                .map(|change| Change {
                    setting: change.setting.id.clone(),
                    place: change.place.to_string(),
                    from: text(change.from.as_ref()),
                    to: text(change.to.as_ref()),
                    takes_effect: (change.setting.takes_effect.iter())
                        .map(ToString::to_string)
                        .collect(),
                })
                .collect(),
            measurements,
            recordings,
            not_shown,
        }
    }
}

/// Formats the value of a setting.
fn text(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "not set".to_owned(), ToString::to_string)
}

/// Returns the number of runs on each side. With this number, a change as large as the standard deviation of
/// the runs is found with a probability of 90 %.
fn runs() -> usize {
    // The standard deviation of the difference between two runs is √2 times the standard deviation of a run.
    planning::pairs(FRAC_1_SQRT_2, 0.9).unwrap_or(32) as usize
}

/// Returns a measurement. Its command is the same on both sides, except for the output file.
fn measurement(probe: Probe, method: &str, command: &str, reasons: Vec<Reason>) -> Measurement {
    let name = probe.name();
    let to = |side: &str| format!("laglab measure {name} {command} -o {side}/{name}.parquet");
    Measurement {
        probe,
        method: method.to_owned(),
        setting: "default scheduling".to_owned(),
        phase: None,
        requested_ns: None,
        size_bytes: None,
        runs: runs(),
        samples_per_run: 1,
        quantile: Some(0.5),
        before: to("before"),
        after: to("after"),
        reasons,
    }
}

fn sleep(reasons: Vec<Reason>) -> Measurement {
    let runs = runs();
    let count = runs * SLEEPS;
    let command = format!("--method Sleep --request 1ms --runs {runs} --count {count}");
    Measurement {
        requested_ns: Some(1_000_000),
        samples_per_run: SLEEPS,
        ..measurement(Probe::Sleep, "Sleep", &command, reasons)
    }
}

fn net(wishes: &Wishes, reasons: Vec<Reason>) -> Measurement {
    let to = quoted(wishes.reflector.as_deref().unwrap_or("REFLECTOR"));
    let runs = runs();
    let command =
        format!("--role source --to {to} --rate 10k --size 100 --run-for 1s --runs {runs}");
    Measurement {
        size_bytes: Some(100),
        samples_per_run: PACKETS,
        ..measurement(Probe::Net, "udp 10000/s", &command, reasons)
    }
}

fn files(wishes: &Wishes, reasons: Vec<Reason>) -> Measurement {
    let folder = quoted(wishes.folder.as_deref().unwrap_or("FOLDER"));
    let command = format!(
        "{folder} --method ReadFile --cache direct --rounds {}",
        runs()
    );
    Measurement {
        setting: "direct".to_owned(),
        phase: Some("total".to_owned()),
        quantile: None,
        ..measurement(Probe::Files, "ReadFile", &command, reasons)
    }
}

fn recording(times: Times, kit: &str, wishes: &Wishes, reasons: Vec<Reason>) -> Recording {
    Recording {
        times,
        row: wishes.row.clone(),
        traces: TRACES,
        seconds: SECONDS,
        kit: format!("laglab record --for {kit} -o kit-{kit}"),
        before: format!("before/{kit}-N.etl"),
        after: format!("after/{kit}-N.etl"),
        reasons,
    }
}

/// Puts an argument into quotes if it has a space.
fn quoted(text: &str) -> String {
    if text.contains(char::is_whitespace) {
        format!("\"{text}\"")
    } else {
        text.to_owned()
    }
}
