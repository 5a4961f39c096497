//! Comparison of measurements before and after a change. It answers the question whether the change helped.
//!
//! [`measured`] reads files of `laglab measure`, and [`columns`] reads CSV and Parquet files of other
//! programs. Both return [`Group`]s of runs. [`traces`] reads a [`TraceMetric`] of a trace. Each trace is one
//! run. [`sides`] selects the groups before and after the change. [`Summary`] reads each run once, and
//! [`judge`] compares the summaries with the methods of the crate `statistics`. A [`change_plan`] lists the
//! measurements before and after a change of settings. Its result is one verdict.
//!
//! A *side* is all runs before the change, or all runs after it.
//!
//! The unit of evidence is a run. The samples of a run depend on each other, so a run gives only one number for each
//! quantile.

pub mod change_plan;
pub mod columns;
mod error;
mod history;
mod judgement;
pub mod measured;
mod picture;
mod plan;
mod runs;
mod sessions;
pub mod sides;
mod stored;
mod summary;
mod trace_metric;
pub mod traces;

pub use error::Error;
pub use history::{History, HistoryLine, Segment, histories};
pub use judgement::{
    Judgement, Line, MOST_NEEDED, Metric, ModeShift, NoRates, OrderEffect, Question, Stalls, judge,
    needed_text,
};
pub use picture::{Histogram, Picture, picture};
pub use plan::{Cheapest, Detectable, Plan, PlanLine, plan};
pub use runs::{Group, Run, TimedSamples, Unit};
pub use sides::{Pairing, Sides};
pub use statistics::counts::RateRatio;
pub use statistics::modes::Move;
pub use statistics::{Comparison, Design, Interval, Order, Scale, Verdict};
pub use summary::Summary;
pub use trace_metric::{Routine, Threads, TraceMetric, UnknownMetric};
