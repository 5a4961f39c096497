//! Plans of measurements before and after a change of settings, and their verdict.
//!
//! A [`MeasurePlan`] is the file `measure.toml` in the folder of a plan of `laglab tune`. [`verdict`] checks that the
//! measurements and traces of both sides match the plan. Then it answers the question whether the change helped.

mod ask;
mod measurements;
mod recordings;
mod verdict;

use diff::Kind;
use serde::{Deserialize, Serialize};

pub use ask::Wishes;
pub use verdict::{Answer, Check, Evidence, PlaceCheck, Side, Verdict, verdict};

/// Name of the plan's file.
pub const FILE: &str = "measure.toml";

/// Plan of measurements before and after a change of settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurePlan {
    /// Version of the format: [`MeasurePlan::VERSION`].
    pub version: u32,
    /// Minimum change that matters, as a share of the value before the change.
    pub margin: f64,
    /// Name of the computer, if the inputs of the plan stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computer: Option<String>,
    /// Planned changes of settings.
    #[serde(default, rename = "change")]
    pub changes: Vec<Change>,
    /// Measurements with `laglab measure`.
    #[serde(default, rename = "measurement", skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Traces to record.
    #[serde(default, rename = "recording", skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<Recording>,
    /// Changes of settings whose effect no known measurement or trace shows.
    #[serde(default, rename = "not_shown", skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<NotShown>,
}

/// Planned change of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Id of the setting in the catalogue.
    pub setting: String,
    /// Location of the setting, such as a registry value.
    pub place: String,
    /// Value before the change.
    pub from: String,
    /// Value after the change.
    pub to: String,
    /// Events that make the change take effect. One of them is enough.
    pub takes_effect: Vec<String>,
}

/// Reason for a measurement or recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Id of the setting.
    pub setting: String,
    /// Effect of the setting, and the activity that is needed during the measurement or recording.
    pub why: String,
    /// URL of the source for the effect.
    pub source: String,
}

/// Planned measurement with `laglab measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Name of the probe.
    pub probe: Probe,
    /// Name of the method.
    pub method: String,
    /// Setting of the probe, in words.
    pub setting: String,
    /// Phase of the operation. `None` if the probe does not measure several phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Requested duration of a sleep, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_ns: Option<i64>,
    /// Size of a packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Number of runs on each side.
    pub runs: usize,
    /// Minimum number of samples in a run.
    pub samples_per_run: usize,
    /// Quantile of a run's samples that is compared, from 0 to 1. `None` if a run has only one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantile: Option<f64>,
    /// Command for the measurement before the change.
    pub before: String,
    /// Command for the measurement after the change.
    pub after: String,
    /// Reasons for the measurement.
    pub reasons: Vec<Reason>,
}

/// Probe of `laglab measure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Lateness of sleeps.
    Sleep,
    /// Round trips of packets.
    Net,
    /// Reads of files.
    Files,
}

impl Probe {
    /// Returns the name of the probe on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Sleep => "sleep",
            Probe::Net => "net",
            Probe::Files => "files",
        }
    }
}

/// Planned recordings of traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Kind of the compared times.
    pub times: Times,
    /// Name of the compared program or module. `None` if all programs or modules are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// Number of traces on each side.
    pub traces: usize,
    /// Planned length of a trace, in seconds. A trace may be up to a tenth shorter.
    pub seconds: f64,
    /// Command that creates the files needed to record the traces.
    pub kit: String,
    /// Files of the traces before the change.
    pub before: String,
    /// Files of the traces after the change.
    pub after: String,
    /// Reasons for the recordings.
    pub reasons: Vec<Reason>,
}

/// Kind of times in traces that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Times that ready threads wait for a CPU, by program.
    Ready,
    /// Times of DPCs, by module.
    Dpcs,
    /// Times of interrupt service routines, by module.
    Isrs,
}

impl Times {
    fn kind(self) -> Kind {
        match self {
            Times::Ready => Kind::Ready,
            Times::Dpcs => Kind::Dpc,
            Times::Isrs => Kind::Isr,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Times::Ready => "waits of ready threads for a CPU",
            Times::Dpcs => "times of DPCs",
            Times::Isrs => "times of interrupt service routines",
        }
    }
}

/// Planned change of a setting. No known measurement or trace shows its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotShown {
    /// Id of the setting.
    pub setting: String,
    /// Reason why the effect is not shown.
    pub why: String,
    /// Other evidence of the effect that the user can look at. `None` if no evidence is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_at: Option<String>,
}

/// Reason why a plan cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file is not TOML, or does not have the fields of a plan.
    #[error("not a plan of measurements: line {line}: {what}")]
    Form {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the fault.
        what: String,
    },
    /// The file has another version.
    #[error(
        "unsupported version {found} of a plan of measurements: this program reads version {}",
        MeasurePlan::VERSION
    )]
    Version {
        /// Version of the file.
        found: u32,
    },
    /// A field is out of range.
    #[error("invalid {what} {found}: give {expected}")]
    Range {
        /// Name of the field.
        what: &'static str,
        /// Value of the field.
        found: f64,
        /// Description of the valid values.
        expected: &'static str,
    },
}

impl MeasurePlan {
    /// Current version of the format.
    pub const VERSION: u32 = 1;

    /// Parses the text of a plan's file.
    ///
    /// # Errors
    /// Returns an error if the text is not a plan, or if a number is out of range.
    pub fn parse(text: &str) -> Result<MeasurePlan, PlanError> {
        let plan: MeasurePlan = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text);
            PlanError::Form {
                line: before.matches('\n').count() + 1,
                what: error.message().replace('\n', " "),
            }
        })?;
        if plan.version != Self::VERSION {
            return Err(PlanError::Version {
                found: plan.version,
            });
        }
        let within = |what, found: f64, is_valid: bool, expected| {
            if is_valid {
                Ok(())
            } else {
                Err(PlanError::Range {
                    what,
                    found,
                    expected,
                })
            }
        };
        let margin = plan.margin;
        let is_share = margin > 0.0 && margin <= 1.0;
        within("margin", margin, is_share, "a share above 0, up to 1")?;
        for of in &plan.measurements {
            let runs = of.runs;
            let is_count = (4..=4_096).contains(&runs);
            within("runs", runs as f64, is_count, "4 to 4096")?;
            let samples = of.samples_per_run;
            let is_count = (1..=1_000_000_000).contains(&samples);
            within(
                "samples_per_run",
                samples as f64,
                is_count,
                "1 to 1000000000",
            )?;
            if let Some(quantile) = of.quantile {
                let is_known = crate::judgement::QUANTILES.contains(&quantile);
                within("quantile", quantile, is_known, "0.5, 0.9, 0.99 or 0.999")?;
            }
        }
        for of in &plan.recordings {
            let is_count = (3..=1_000).contains(&of.traces);
            within("traces", of.traces as f64, is_count, "3 to 1000")?;
            let is_time = of.seconds >= 0.0 && of.seconds <= 1e6;
            within("seconds", of.seconds, is_time, "0 to 1000000")?;
        }
        Ok(plan)
    }

    /// Returns the text of the plan's file.
    pub fn to_text(&self) -> String {
        // Conversion to TOML fails only for types that TOML cannot represent, such as maps whose keys are
        // not text.
        let text = toml::to_string(self).expect("a plan is plain data");
        format!(
            "# What to measure before and after the changes of this plan. Run the commands in this folder: the\n\
             # commands of `before` now, and the commands of `after` when the changes are in effect.\n\
             # `laglab prove verdict DIR` compares the files in before/ and after/.\n\n{text}"
        )
    }
}
