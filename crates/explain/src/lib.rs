//! Finds out why a Windows machine lagged.
//!
//! A [`Theory`] asks one question ("did threads have a rank, so that others ran first?") and
//! answers it *for*, *against* or *not recorded*, with numbers. A [`Finding`] has a sentence, a
//! delay, [`Subject`]s, and [`Evidence`]: rows and the query that returns the same rows.
//! [`explain`] runs all theories and ranks their findings.
//!
//! Sums that several theories need are computed once, in the [`Survey`]. Each theory reads other
//! data itself, through the [`Case`].
//!
//! Times are nanoseconds since the trace's start, as in the tables.

mod case;
mod engine;
mod evidence;
mod finding;
mod focus;
mod frames;
mod labels;
mod machine;
mod ranges;
mod reader;
mod runs;
mod scope;
mod subject;
mod survey;
mod suspend_gaps;
mod theories;
mod theory;
mod thresholds;

pub(crate) use ::wording::{counted, duration, grouped, listed, moment, percent, size};
pub use case::Case;
pub use engine::{Conclusion, Explanation, explain};
pub use evidence::{Column, Evidence, Unit, Value};
pub use finding::{Delay, Finding, Judgement, Severity, Source, Verdict};
pub use focus::between_focus;
pub use labels::wait_reason;
pub use reader::Reader;
pub use scope::{Scope, is_called};
pub use subject::Subject;
pub use survey::{
    ClockSkew, Complete, CpuUse, Doubtful, InterruptUse, Interrupted, Load, Locked, LostSecond,
    NoticedWaits, Pair, ProcessUse, RankUse, RoutineUse, Spread, Survey, ThreadWaits, Wait,
    limit_ns, own_runs,
};
pub use suspend_gaps::SuspendGaps;
pub use theories::{PathPart, PathTime, divided, story, tables};
pub use theory::{About, Outcome, Theory};
pub use thresholds::thresholds;
