//! Facts about a trace: system, contents, missing data and damage.
//!
//! [`Info`] is computed from tables, so no event of a cached trace is read for it.
//!
//! Times are nanoseconds since the trace's start.

mod contents;
mod damage;
mod fact_rows;
mod info;
mod moment;
mod windows_release;

pub use contents::{Content, Data, UnansweredQuestion};
pub use damage::{DamageReport, FaultReport, Losses};
pub use info::{CpuActivity, CpuDrops, Cpus, Extent, Info, Session, System};
pub use moment::{Moment, MomentError, NoTimeOfDay};
pub use windows_release::windows_release;
