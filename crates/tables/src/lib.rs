//! Windows trace events as tables.
//!
//! [`build`] reads a trace once, all CPUs in parallel, and gives the tables asked for: each as a
//! plain struct of columns, and from that as Arrow record batches. The trackers find the process,
//! thread or image that an id or address meant at a moment.
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
//! // The same as Arrow record batches, one per CPU stream.
//! let batches = tables.take_batches(Table::ContextSwitches);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are nanoseconds since the trace's start. What a trace does not say is absent, never 0;
//! what is lost or unreadable is in [`Tables::damage`] and [`Tables::unreadable`].
//!
//! Each table is declared once, in the file that fills it; its documentation and its Arrow schema
//! come from there, and [`reference()`] writes `docs/tables.md` from it.

mod build;
mod captures;
mod column;
mod context_switches;
mod cpu_runs;
mod cpus;
mod damages;
mod disk_io;
mod doubtful;
mod event_rows;
mod file_io;
mod focus;
mod frame;
mod hard_faults;
mod identities;
mod images;
mod input;
mod interrupts;
mod intervals;
mod join;
mod kept;
mod labels;
mod latency_samples;
mod marks;
mod network;
mod one_recording;
mod opened;
mod packets;
mod plan;
mod priorities;
mod process_freezes;
mod processes;
mod provider_events;
mod ready_threads;
mod recorded;
mod reference;
mod run;
mod sample_files;
mod samples;
mod scheduling;
mod schema;
mod sessions;
mod slices;
mod stack_index;
mod stacks;
mod store;
mod stream;
mod system_config;
mod tables;
mod threads;
mod time;
mod timed;
mod timer_requests;
mod trackers;
mod unreadable;
mod view;
mod volumes;
mod world;

pub use build::{Cancelled, Options, StreamError, Summary, build, stream};
pub use captures::{CaptureError, is_capture};
pub use column::{Addresses, Bytes, Lists, Named, Names, Nullable, Primitive, Text};
pub use context_switches::{ContextSwitches, ContextSwitchesView};
pub use cpu_runs::{CpuRuns, CpuRunsView};
pub use cpus::{Cpus, CpusView};
pub use damages::{Damages, DamagesView};
pub use disk_io::{DiskIo, DiskIoKind, DiskIoView};
pub use doubtful::DoubtfulRuns;
pub use event_rows::{Events, EventsView};
pub use file_io::{FileIo, FileIoView, FileOperationKind};
pub use focus::{Focus, FocusView};
pub use hard_faults::{HardFaults, HardFaultsView};
pub use identities::{Identities, Process, file_name, module_name};
pub use images::{Images, ImagesView};
pub use input::{Input, InputKind, InputView};
pub use interrupts::{Interrupts, InterruptsView};
pub use intervals::span_of;
pub use labels::Functions;
pub use latency_samples::{LatencySamples, LatencySamplesView, Probe, SampleOutcome};
pub use marks::{MarkSource, Marks, MarksView};
pub use network::{Network, NetworkSource, NetworkView, Transport};
pub use packets::{PacketSource, Packets, PacketsView};
pub use priorities::{Priorities, PrioritiesView, PriorityKind};
pub use process_freezes::{ProcessFreezes, ProcessFreezesView};
pub use processes::{Processes, ProcessesView};
pub use ready_threads::{ReadyThreads, ReadyThreadsView};
pub use reference::reference;
pub use sample_files::{SamplesError, is_parquet};
pub use samples::{Samples, SamplesView};
pub use schema::{ColumnSchema, TableSchema, WrongType};
pub use sessions::{Sessions, SessionsView};
pub use stacks::{Stacks, StacksView};
pub use store::{Cache, CacheFolder, CacheUsage, Chunk, Store, StoreError, StoredTable};
pub use system_config::{SystemConfig, SystemConfigView};
pub use tables::{Table, Tables, UnknownTable};
pub use threads::{Threads, ThreadsView};
pub use timer_requests::{TimerRequestKind, TimerRequests, TimerRequestsView};
pub use trackers::{ImageTracker, ProcessTracker, ThreadTracker};
pub use unreadable::Unreadable;
pub use view::{AddressesView, BytesView, Flags, NullableView, TextView};
pub use volumes::Volumes;
