//! Which of many settings makes it slow, found by measuring.
//!
//! Half of the settings are made active, the machine is measured, and so on: a bisection. What makes
//! it more than one is that a measurement can be wrong, that several settings may be guilty, and that
//! some are so only together.
//!
//! - [`SequentialTest`] makes a yes or no of repeated measurements: as few as will do for the rates of
//!   false alarms and misses that were asked for.
//! - [`Hunt`] chooses what to make active next and judges the answers, whose errors it reckons with.
//! - [`Search`] is both over a [`Log`] of what was measured, from which it can always go on.
//!
//! Nothing in here runs, reads or writes anything.

mod hunt;
mod log;
mod search;
mod sequential_test;

pub use hunt::{Found, Hunt, Suspect, Trial, Verdict};
pub use log::{Log, LogError, Plan, PlanError, Round};
pub use search::{Outcome, Purpose, Search, SearchError, Step};
pub use sequential_test::{Answer, ErrorRates, References, SequentialTest};
