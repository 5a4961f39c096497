//! `--why`: records events of the kernel while a probe runs, and explains the late samples of the probe.

#[cfg(target_os = "linux")]
#[path = "recorded.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "nothing.rs"]
mod system;

use std::path::PathBuf;
use std::time::Duration;

use measure::{End, FilesPhase, Measurement, Probe};

use super::scheduling::time;
use crate::cli::Failure;
pub(super) use system::Why;

/// Options about the causes of late samples.
#[derive(clap::Args)]
pub(super) struct WhyOptions {
    /// Linux: also record events of the kernel, and explain the late samples. Needs root or CAP_PERFMON
    #[arg(long, help_heading = "Causes")]
    why: bool,
    /// Explain samples later than this [default: the p99.9 of a pilot, which runs first]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "why", help_heading = "Causes")]
    why_over: Option<Duration>,
    /// New folder for the recordings around late samples [default: laglab-why]
    #[arg(long, value_name = "DIR", requires = "why", help_heading = "Causes")]
    why_folder: Option<PathBuf>,
}

/// Limit above which samples are late, and the pilot. If the user gave no limit, the limit comes from the pilot.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only the recorder of Linux uses it")
)]
struct Bound {
    over: Duration,
    /// Number of samples of the pilot; `None` if the user gave the limit.
    samples: Option<u64>,
    pilot: Measurement,
}

impl WhyOptions {
    /// Returns true if the options ask for causes.
    pub(super) fn is_asked(&self) -> bool {
        self.why
    }

    /// Runs a pilot and starts a recorder, if the options ask for causes.
    ///
    /// # Errors
    /// Returns an error if the pilot fails, if this machine cannot record, or if the folder cannot be made.
    pub(super) fn begin(
        &self,
        pilot: impl FnOnce() -> Result<Measurement, Failure>,
    ) -> Result<Option<Why>, Failure> {
        if self.why {
            Why::begin(self.why_folder.as_deref(), || self.bound(pilot()?)).map(Some)
        } else {
            Ok(None)
        }
    }

    fn bound(&self, pilot: Measurement) -> Result<Bound, Failure> {
        if pilot.end == End::Stopped {
            return Err(Failure::Interrupted);
        }
        let groups = pilot.groups();
        let sampled = groups.iter().filter(|group| is_sampled(group.first));
        let bounds = sampled
            .clone()
            .filter_map(|group| group.percentiles().quantile(0.999));
        let of_pilot = bounds.max().and_then(|ns| u64::try_from(ns).ok());
        let samples = sampled.map(|group| group.percentiles().count()).sum();
        let (over, samples) = match (self.why_over, of_pilot) {
            (Some(over), _) => (over, None),
            (None, Some(ns)) => (Duration::from_nanos(ns), Some(samples)),
            (None, None) => {
                let why = "the pilot has no sample; give a bound with --why-over";
                return Err(Failure::Input(format!("cannot find late samples: {why}")));
            }
        };
        Ok(Bound {
            over,
            samples,
            pilot,
        })
    }
}

/// Returns true if the samples of a series can be late samples. For files, only single reads can be late samples.
fn is_sampled(series: &measure::Series) -> bool {
    series.probe != Probe::Files || series.phase.as_deref() == Some(FilesPhase::EachRead.name())
}
