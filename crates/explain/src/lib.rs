//! Finds out why a machine with Windows or Linux lagged.
//!
//! A [`Theory`] asks one question, such as "did threads wait because a thread of higher priority ran?". Its judgement
//! is *for* (yes), *against* (no) or *not recorded* (the trace lacks the data), with numbers. A [`Finding`] has a
//! sentence, a delay, [`Subject`]s, and [`Evidence`]: rows and the query that returns the same rows.
//! [`explain`] runs all theories and ranks their findings.
//!
//! Sums that several theories need are computed once, in the [`Survey`]. Each theory reads other
//! data itself, through the [`Case`].
//!
//! Times are nanoseconds since the trace's start, as in the tables.

mod case;
mod chain;
mod drivers;
mod engine;
mod evidence;
mod finding;
mod focus;
mod frames;
mod labels;
mod machine;
mod numbers;
mod ranges;
mod reader;
mod runs;
mod scope;
mod subject;
mod survey;
mod suspend_gaps;
mod system;
mod theories;
mod theory;
mod thread_state;
mod thresholds;

pub(crate) use ::wording::{Name, counted, duration, grouped, listed, moment, size};
pub use case::Case;
pub use engine::{Conclusion, Explanation, explain};
pub use evidence::{Column, Evidence, Unit, Value};
pub use finding::{Delay, Finding, Headline, Judgement, Severity, Source, Verdict};
pub use focus::between_focus;
pub use labels::{is_kernel, wait_reason};
pub(crate) use numbers::percent;
pub use reader::Reader;
pub use scope::{Scope, is_called};
pub use subject::Subject;
pub use survey::{
    ClockSkew, Complete, CpuUse, Damage, Doubtful, InterruptReader, InterruptUse, Load,
    LockedRange, LostSecond, NoticedWaits, Pair, ProcessUse, RankUse, Response, RoutineUse,
    SampledLock, Spread, Survey, ThreadWaits, Wait, limit_ns, own_runs,
};
pub use suspend_gaps::SuspendGaps;
pub use system::Terms;
pub use theories::{PathPart, PathTime, TIMERS_PER_PROCESS_FROM, divided, late, story, tables};
pub use theory::{About, Outcome, Theory};
pub use thread_state::{QUANTUM_END, SLEEP_REASONS, TERMINATED, WAITING};
pub use thresholds::thresholds;
