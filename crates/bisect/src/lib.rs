//! Search for the settings that make a machine slow, by measurements.
//!
//! The search is a bisection: activate half of the settings, measure, and continue with the half that
//! contains the cause. It must also work if measurements vary, if several settings make the machine slow,
//! and if some settings do so only together.
//!
//! - [`SequentialTest`] decides from repeated measurements whether the machine is slow. It needs as few
//!   measurements as possible for the requested rates of false alarms and misses.
//! - [`Hunt`] selects the settings to activate next and evaluates the answers. Some answers may be wrong.
//! - [`Search`] combines both. It keeps a [`Log`] of measurements, from which it can always resume.
//!
//! The crate only computes. It does not run programs and does not read or write files.

mod hunt;
mod log;
mod search;
mod sequential_test;

pub use hunt::{Cause, Hunt, Suspect, Trial, Verdict};
pub use log::{Log, LogError, Plan, PlanError, Round};
pub use search::{Outcome, Purpose, Search, SearchError, Step};
pub use sequential_test::{Answer, ErrorRates, References, SequentialTest};
