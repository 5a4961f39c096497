//! Live probes: how late is this machine, right now?
//!
//! A probe takes samples on a [`Pacing`] that never leaves one out, reads a [`Clock`] whose cost and
//! resolution are measured first, and puts what it saw into [`Series`]. A [`Measurement`] is all
//! series of one command with what they were taken under: [`Machine`], clock, and what of the
//! [`Scheduling`] asked for was granted. It becomes the table `latency_samples`.
//!
//! ```
//! use measure::{Clock, Now, Pacing};
//!
//! let clock = Clock::best();
//! let mut pacing = Pacing::every(1_000_000, clock.now_ns());
//! for _ in 0..3 {
//!     let slot = pacing.slot();
//!     // … wait for slot.intended_ns, do what is measured …
//!     assert!(slot.intended_ns <= clock.now_ns() + 2_000_000);
//! }
//! ```
//!
//! Methods are measured side by side: a [`Plan`] repeats runs of them in rotated order until the
//! medians are known well enough, and [`compare`] says whether one differs from another, with a
//! confidence interval. Nothing here prints or knows the command line.

mod clock;
mod compare;
#[cfg(target_arch = "x86_64")]
mod cpu;
mod files;
mod heat;
mod machine;
mod measurement;
pub mod net;
mod pacing;
mod percentiles;
mod picture;
mod plan;
mod sample;
mod scheduling;
mod sleep;
mod spin;

pub use clock::{Clock, ClockError, ClockFacts, ClockSource, Now};
pub use compare::{Comparison, Incomparable, Interval, Verdict, compare};
pub use files::{
    CHUNK, CacheState, FileSet, FileSizes, FilesError, FilesMeasured, FilesMethod, FilesPhase,
    FilesProbe, UringMode,
};
pub use heat::{HeatAxes, HeatMap, HeatScale};
pub use machine::{Machine, Virtualised};
pub use measurement::{Group, Measurement, SettingGrants, Unavailable};
pub use pacing::{Lateness, Pacing, Slot};
pub use percentiles::{Percentiles, Summary};
pub use picture::{density, heat_colour, heat_png, heat_svg, heat_svg_rows, short_time};
pub use plan::{End, Plan, Turn};
pub use sample::{Sample, Series};
pub use scheduling::{Grant, Policy, Scheduling};
pub use sleep::{
    HeldResolution, Resolution, SleepError, SleepMethod, SleepPlan, SleepSetting, UnknownMethod,
    hold_resolution,
};
pub use spin::Spin;
pub use tables::{Probe, SampleOutcome};

/// Asked between samples; when it says true, a measurement ends and keeps what it has.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);
