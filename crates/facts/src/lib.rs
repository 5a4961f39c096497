//! Facts about a trace: system, contents, missing data and damage.
//!
//! [`Info`] is computed from tables, so no event of a cached trace is read for it. [`Stats`] counts the
//! events of a trace. [`Processes`] returns names of processes and threads by id and time. [`Filter`]
//! and [`Sieve`] select events.
//!
//! Times are nanoseconds since the trace's start.

mod contents;
mod damage;
mod event_filter;
mod fact_rows;
mod info;
mod lives;
mod metadata;
mod moment;
mod processes;
mod stats;
mod windows_release;

pub use contents::{Content, Data, Missing};
pub use damage::{DamageReport, FaultReport};
pub use event_filter::{EventPattern, Filter, KindNames, LinuxSieve, ProviderPattern, Sieve};
pub use import_windows::EventKind;
pub use info::{CpuActivity, Cpus, Dropped, Extent, Info, Session, System};
pub use metadata::{MetadataError, MetadataFiles};
pub use moment::{Moment, MomentError, NoTimeOfDay};
pub use processes::{Processes, is_life, known_id, processes_in, threads_in};
pub use stats::{ClassicEvents, KernelEvents, Messages, Provider, ProviderEvents, Stats};
pub use windows_release::windows_release;
