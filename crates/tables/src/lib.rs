//! Windows trace events as tables.
//!
//! [`build`] reads a trace once, all CPUs in parallel, and gives the tables asked for: each as a
//! plain struct of columns, and from that as Arrow record batches. The trackers find the process,
//! thread or image that an id or address meant at a moment.
//!
//! Each table is declared once, in the file that fills it; its documentation and its Arrow schema
//! come from there, and [`reference()`] writes `docs/tables.md` from it.

mod build;
mod column;
mod context_switches;
mod disk_io;
mod hard_faults;
mod images;
mod interrupts;
mod kept;
mod processes;
mod ready_threads;
mod reference;
mod samples;
mod schema;
mod threads;
mod time;
mod trackers;
mod unreadable;
mod volumes;

pub use build::{Cancelled, Options, Table, Tables, UnknownTable, build};
pub use column::{Named, Names, Nullable, Text};
pub use context_switches::ContextSwitches;
pub use disk_io::{DiskIo, DiskIoKind};
pub use hard_faults::HardFaults;
pub use images::Images;
pub use interrupts::Interrupts;
pub use processes::Processes;
pub use ready_threads::ReadyThreads;
pub use reference::reference;
pub use samples::Samples;
pub use schema::{ColumnSchema, TableSchema};
pub use threads::Threads;
pub use trackers::{ImageTracker, ProcessTracker, ThreadTracker};
pub use unreadable::Unreadable;
pub use volumes::Volumes;
