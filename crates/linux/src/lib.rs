//! Recordings of the Linux kernel, as `perf record` (`perf.data`) and `trace-cmd record` (`trace.dat`) write them, and the
//! text that `perf script`, `trace-cmd report` and the kernel print.
//!
//! [`Recording::open`] reads the descriptions in a file and finds its [`Chunk`]s. A chunk is a sequence of
//! consecutive records of one CPU. [`Recording::read`] returns the [`Event`]s of a chunk. The file itself describes
//! the layouts of tracepoints, because their ids and offsets differ between kernels.
//!
//! ```no_run
//! let source = files::FileSource::new(std::fs::File::open("perf.data")?)?;
//! let recording = linux::Recording::open(Box::new(source))?;
//! for chunk in recording.chunks() {
//!     recording.read(chunk, &mut |event| println!("{event:?}"))?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A recording is untrusted input. A bad record is skipped, counted and reported with its offset ([`Damage`]), and the
//! other records are read. If `perf` was killed, the file lacks its end and the descriptions there. The records of this
//! file are still read, except records that need the missing descriptions. Streams (`perf record -o -`) are also read.
//!
//! Events of trace-cmd are pages of the kernel's ring buffer. When a chunk is read, its pages are converted to the form
//! of perf's records. The lines of a text are converted when the recording is opened.
//!
//! Sources of the format: `include/uapi/linux/perf_event.h` of the kernel, and
//! `tools/perf/Documentation/perf.data-file-format.txt`, trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

mod attribute;
mod bytes;
mod chunk;
mod compression;
mod damage;
mod error;
mod event;
mod event_name;
mod facts;
mod features;
mod format;
mod gaps;
mod header;
mod in_order;
mod inflater;
mod kallsyms;
mod part;
mod record;
mod recording;
mod ring_buffer;
mod sample;
mod text;
mod thread_state;
mod trace_dat;
mod tracepoints;
mod tracing_data;

pub use attribute::{Attribute, Clock};
pub use chunk::Chunk;
pub use damage::{Damage, Fault, Faults, Gap, GapKind};
pub use error::OpenError;
pub use event::{Chain, Event, EventKind};
pub use features::{System, WallClock};
pub use format::{Field, FieldValue, Format};
pub use part::{PartError, WrittenCounts};
pub use recording::{Recorder, Recording, is_recording};
pub use thread_state::ThreadState;
pub use tracepoints::{Meaning, Request, Switch, SwitchedThread, ThreadName, Tracepoint, Woken};
