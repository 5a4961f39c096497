//! Windows trace events as tables.
//!
//! [`build`] reads a trace, with all CPUs in parallel, and returns the requested tables. A table is a struct
//! of columns. It can be converted to Arrow record batches. A [`Store`] keeps tables in files, so that a
//! trace is read only once. Windows reuses ids and addresses. Therefore trackers find the process, thread or
//! image to which an id or address belonged at a given time.
//!
//! ```no_run
//! use tables::{Options, ProcessTracker, Table, ThreadTracker};
//!
//! let trace = etl::open(&["trace.etl".into()])?;
//! let wanted = [Table::ContextSwitches, Table::Processes, Table::Threads];
//! let mut tables = tables::build(&trace, &wanted, Options::default())?;
//!
//! let processes = ProcessTracker::new(&tables.processes);
//! let threads = ThreadTracker::new(&tables.threads);
//! for switches in &tables.context_switches {
//!     for (time_ns, thread) in switches.time_ns.iter().zip(&switches.new_thread_id) {
//!         let process = threads.process_id(*thread, *time_ns);
//!         let name = process.and_then(|id| processes.name(id, *time_ns));
//!         println!("{time_ns} ns: thread {thread} of {}", name.unwrap_or("an unknown process"));
//!     }
//! }
//! // The same rows as Arrow record batches, one per CPU stream.
//! let batches = tables.take_batches(Table::ContextSwitches);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are nanoseconds since the trace's start. Unknown values are null, never 0. Lost events and
//! unreadable parts of the trace are in [`Tables::damage`] and [`Tables::unreadable`].
//!
//! Each table is declared once, in its file in `table/`. The documentation and the Arrow schema of the table
//! come from this declaration. [`reference()`] generates `docs/tables.md` from all declarations.

mod activity;
mod build;
mod captures;
mod column;
mod doubtful;
mod event_buffer;
mod first_pass;
mod frame;
mod identities;
mod imports;
mod in_memory;
mod intervals;
mod kernel_flags;
mod kind_survey;
mod labels;
mod linux_recording;
mod memory;
mod one_recording;
mod plan;
mod presence;
mod providers;
mod recorded;
mod recording;
mod reference;
mod register;
mod run;
mod sample_conditions;
mod sample_files;
mod scheduling;
mod schema;
mod slice;
mod slices;
mod stack_index;
mod store_error;
mod stored_table;
mod table;
mod time;
mod timed;
mod trace_store;
mod trackers;
mod unreadable;
mod view;
mod volumes;
mod windows_recording;

pub use ::events::kernel::{InterruptKind, thread_state};
pub use build::{Cancelled, Options, Summary, build};
pub use captures::{CaptureError, is_capture};
pub use column::{Addresses, Bytes, Lists, Named, Names, Nullable, Text};
pub use doubtful::{DoubtfulRuns, MAX_WEIGHT_NS};
pub use identities::{Identities, Process, file_name, module_name};
pub use imports::open_recording;
pub use in_memory::Tables;
pub use kind_survey::{EventKind, KindCount, KindSurvey, learn, tracelogging_schema};
pub use labels::Functions;
pub use linux_recording::path_of as facts_path;
pub use linux_recording::states as linux_states;
pub use linux_recording::states::wait_reason;
pub use linux_recording::{LinuxDecoder, LinuxRecording, is_linux_recording};
pub use one_recording::check_one_recording;
pub use recording::{
    Buffers, GiveRows, Losses, OperatingSystem, RecordedSession, Recording, RecordingInfo,
    SessionHeader,
};
pub use reference::reference;
pub use sample_conditions::SampleConditions;
pub use sample_files::{SamplesError, check_parquet, is_parquet};
pub use schema::{ColumnSchema, RowInterval, TableSchema, WrongType};
pub use store::{CacheFolder, CacheUsage, RowGroup, ScratchFolder};
pub use store_error::StoreError;
pub use stored_table::StoredTable;
pub use table::disk_io::block::disk_of_linux;
pub use table::*;
pub use time::utc;
pub use trace_store::{Cache, Store};
pub use trackers::{ImageTracker, Life, Lifetimes, ProcessTracker, ThreadTracker};
pub use unreadable::Unreadable;
pub use view::{AddressesView, BytesView, Flags, NullableView, TextView};
pub use windows_recording::{WindowsRecording, info_of, losses_of};
