//! Why did it lag? Theories about a trace, judged by its tables.
//!
//! A [`Theory`] asks one question ("were threads outranked by others of lower priority?") and
//! answers it *for*, *against* or *not recorded*, with its numbers. What it finds is a [`Finding`]:
//! a sentence, how much of the user's time it cost, and [`Evidence`], each with the SQL that gives
//! the same rows to anyone who doubts them. [`explain`] asks all of them and ranks what they find.
//!
//! What several theories need is summed up once, in the [`Survey`]; what only one needs it reads
//! itself, from the tables of the [`Case`].
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
mod runs;
mod silence;
mod survey;
mod theories;
mod theory;
mod wording;

pub use case::{Asked, Case, is_called};
pub use engine::{Conclusion, Explanation, explain, tables};
pub use evidence::{Column, Evidence, Unit, Value};
pub use finding::{Finding, Judgement, Loss, Severity, Source, Verdict};
pub use focus::between_focus;
pub use silence::Silences;
pub use survey::{
    ClockSkew, Complete, CpuUse, Doubtful, InterruptUse, Load, Locked, NOTICED_NS, NoticedWaits,
    Pair, ProcessUse, RankUse, RoutineUse, Spread, Survey, Wait, limit_ns,
};
pub use theories::story;
pub use theory::{About, Outcome, Theory};
pub(crate) use wording::{counted, listed, moment};
pub use wording::{duration, grouped, percent, size};
