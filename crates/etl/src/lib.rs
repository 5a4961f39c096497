//! Reader of Windows event trace logs (`.etl`) for any operating system.
//!
//! The crate reads the file format: files and archives, buffers and their compression, and the headers of
//! events. Its clocks convert counter ticks to nanoseconds. The crate `events` decodes the contents of
//! events.
//!
//! # All events in the order of time
//!
//! [`open`] takes the files of one trace, plain or inside archives, and finds their buffers. `Trace::events`
//! then returns the events one by one. It reads a buffer only when the first event of the buffer is needed:
//!
//! ```no_run
//! let trace = etl::open(&["trace.etl".into()])?;
//! let mut events = trace.events();
//! while let Some(event) = events.next() {
//!     println!(
//!         "{} ns, CPU {}: {}, {} bytes",
//!         event.time_ns(),
//!         event.cpu(),
//!         event.kind().name(),
//!         event.payload().len(),
//!     );
//! }
//! # Ok::<(), etl::OpenError>(())
//! ```
//!
//! [`Trace::from_sources`] reads bytes that are not in a file. They can be any [`files::Source`], such as a vector:
//!
//! ```
//! use etl::Trace;
//! use etl::write::{KernelEvent, Session, Writer};
//!
//! let session = Session { perf_frequency: 1_000_000, ..Session::default() };
//! let mut log = Writer::new(std::io::Cursor::default(), session)?;
//! let event = KernelEvent { hook: 0x0529, version: 2, time: 7, thread: Some((4, 8)) };
//! log.kernel(0, event, b"payload")?;
//! let bytes: Vec<u8> = log.finish()?.into_inner();
//!
//! let trace = Trace::from_sources(vec![("written".to_owned(), Box::new(bytes))])?;
//! let mut events = trace.events();
//! let mut found = None;
//! while let Some(event) = events.next() {
//!     if event.hook() == Some(0x0529) {
//!         found = Some((event.time_ns(), event.payload().to_vec()));
//!     }
//! }
//! assert_eq!(found, Some((7_000, b"payload".to_vec())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One CPU at a time, in parallel
//!
//! If the order of events between CPUs does not matter, the streams of the CPUs can be read in parallel, each
//! with a separate reader. This example uses one thread per CPU. On machines with many CPUs, a thread pool is
//! better.
//!
//! ```no_run
//! let trace = etl::open(&["trace.etl".into()])?;
//! let count = |stream: etl::CpuStream<'_>| {
//!     let mut reader = stream.reader();
//!     let events: usize = stream.buffers().iter().map(|b| reader.read(b).count()).sum();
//!     println!("CPU {}: {events} events", stream.cpu());
//! };
//! std::thread::scope(|scope| {
//!     for stream in trace.streams() {
//!         scope.spawn(move || count(stream));
//!     }
//! });
//! # Ok::<(), etl::OpenError>(())
//! ```
//!
//! # Damaged and incomplete traces
//!
//! Opening fails only if nothing can be read. All other losses and faults are [`Damage`]. Damage in the
//! headers and in the chain of buffers is known after opening. Damage inside a buffer is known after the
//! buffer was read. Undamaged events are always returned.
//!
//! ```no_run
//! let trace = etl::open(&["trace.etl".into()])?;
//! let mut events = trace.events();
//! while events.next().is_some() {}
//!
//! let mut damage = trace.damage().clone();
//! damage.merge(events.damage().clone());
//! println!("{} events were lost while recording", damage.events_lost);
//! for fault in damage.faults() {
//!     println!("file {}, byte {:#x}: {}", fault.file, fault.buffer_offset, fault.what);
//! }
//! # Ok::<(), etl::OpenError>(())
//! ```

mod archive;
mod buffer;
mod clock;
pub mod compress;
mod damage;
mod error;
mod event;
mod foreign;
mod guid;
pub mod ids;
pub mod le;
mod logfile;
mod open;
mod reader;
mod scan;
mod time_order;
mod trace;
pub mod write;

pub use archive::{ArchiveError, cabinet_files, expand_cabinet, repeated_name};
pub use buffer::{BufferRef, HEADER_SIZE as BUFFER_HEADER_SIZE, flag as buffer_flag};
pub use clock::{Clock, ClockKind};
pub use damage::{Damage, Fault, FaultKind};
pub use error::OpenError;
pub use event::{Descriptor, Event, ExtendedItem, ExtendedItems, HeaderKind, Place, ext_type};
pub use foreign::Foreign;
pub use guid::{Guid, ParseGuidError};
pub use logfile::{LogFileHeader, mode};
pub use open::open;
pub use reader::{BufferReader, Events};
pub use scan::Segment;
pub use time_order::TimeOrder;
pub use trace::{CpuStream, Trace};
