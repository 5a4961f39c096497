//! Did a change help? Compares measurements before and after it.
//!
//! [`measured`] reads files of `laglab measure`, and [`columns`] reads CSV files of other programs. Both
//! return [`Group`]s of runs. [`sides`] selects the groups before and after the change, and [`judge`]
//! compares them with the methods of the crate `statistics`.
//!
//! The unit of evidence is a run. The samples of a run depend on each other, so each run counts as one
//! number for each quantile.

pub mod columns;
mod error;
mod judgement;
pub mod measured;
mod picture;
mod runs;
pub mod sides;

pub use error::Error;
pub use judgement::{Judgement, Line, Metric, Question, Stalls, judge};
pub use picture::{Histogram, Picture, picture};
pub use runs::{Group, Run, Unit};
pub use sides::Sides;
pub use statistics::{Comparison, Design, Interval, Scale, Verdict};
