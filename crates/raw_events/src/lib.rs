//! Events of a recording, one by one: selection, owners of ids, descriptions and numbers by kind.
//!
//! Tables have only the events with a known meaning, and none of their bytes. The rooms that show, count, cut or
//! redact all events of a recording read them here.
//!
//! Times are nanoseconds since the trace's start.

mod event_filter;
mod lives;
mod metadata;
mod processes;
mod stats;

pub use event_filter::{EventPattern, Filter, KindNames, LinuxSieve, ProviderPattern, Sieve};
pub use import_windows::EventKind;
pub use metadata::{MetadataError, MetadataFiles};
pub use processes::{Processes, is_life, known_id, processes_in, threads_in};
pub use stats::{ClassicEvents, KernelEvents, Messages, Provider, ProviderEvents, Stats};
