//! Live probes. A probe measures how late this machine is at present.
//!
//! A probe starts its samples at the times of a [`Pacing`] and times them with a [`Clock`], whose
//! cost and resolution are measured first. It stores the samples in [`Series`]. A [`Measurement`]
//! holds all series of a command and the conditions: the [`Machine`], the clock, and the part of
//! the requested [`Scheduling`] that the system granted. A measurement can be converted into the
//! table `latency_samples`.
//! ```
//! use measure::{Clock, Now, Pacing};
//!
//! let clock = Clock::best();
//! let mut pacing = Pacing::every(1_000_000, clock.now_ns());
//! for _ in 0..3 {
//!     let slot = pacing.slot();
//!     // Wait until slot.intended_ns, then do the operation.
//!     assert!(slot.intended_ns <= clock.now_ns() + 2_000_000);
//! }
//! ```
//!
//! Methods are measured in turns: a [`Plan`] repeats runs in rotating order until the medians are
//! known precisely enough. [`compare`] reports with a confidence interval whether two methods
//! differ. This crate does not print and does not parse arguments.

mod clock;
mod compare;
#[cfg(target_arch = "x86_64")]
mod cpu;
mod files;
mod heat;
mod late;
mod machine;
mod measurement;
pub mod net;
mod pacing;
mod percentiles;
mod picture;
mod plan;
mod refusal;
mod sample;
mod scheduling;
mod sleep;
mod spin;
mod unknown_name;

pub use clock::{Clock, ClockError, ClockFacts, ClockSource, Now};
pub use compare::{Comparison, compare};
pub use files::{
    CHUNK, CacheState, FileSet, FileSizes, FilesError, FilesMeasured, FilesMethod, FilesPhase,
    FilesProbe, UringMode,
};
pub use heat::{GrowingHeatMap, HeatAxes, HeatMap, HeatScale, run_length_ns};
pub use late::{LateSample, LateSamples, system_clock_ns};
pub use machine::{Machine, Virtualised};
pub use measurement::{Group, Measurement, SettingGrants, Unavailable};
pub use pacing::{Lateness, Pacing, Slot};
pub use percentiles::{Percentiles, Summary};
pub use picture::{density, heat_colour, heat_png, heat_svg, heat_svg_rows, short_time};
pub use plan::{End, Goal, Plan, Turn};
pub use refusal::Refusal;
pub use sample::{Sample, Series};
pub use scheduling::{Grant, Policy, Scheduling};
pub use sleep::{
    HeldResolution, Resolution, SleepError, SleepMethod, SleepPlan, SleepSetting, hold_resolution,
};
pub use spin::Spin;
pub use statistics::{Incomparable, Interval, MARGIN, Verdict};
pub use tables::{Probe, SampleOutcome};
pub use unknown_name::UnknownName;

/// Function that a probe calls between samples. If it returns true, the measurement ends and keeps
/// its samples.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);
