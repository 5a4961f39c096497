//! Recordings of the Linux kernel, as `perf record` writes them (`perf.data`).
//!
//! [`Recording::open`] reads the descriptions in a file and finds its [`Chunk`]s: neighbouring records of one
//! CPU. [`Recording::read`] returns the [`Event`]s of a chunk. The layouts of tracepoints are read from the file
//! itself, because ids and offsets differ between kernels.
//!
//! ```no_run
//! let source = etl::FileSource::new(std::fs::File::open("perf.data")?)?;
//! let recording = linux::Recording::open(Box::new(source))?;
//! for chunk in recording.chunks() {
//!     recording.read(chunk, &mut |event| println!("{event:?}"))?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A recording is hostile input. A bad record is skipped, counted and reported with its offset ([`Damage`]), and
//! the rest is read. A file without an end (`perf` was killed) and a stream (`perf record -o -`) are read as far
//! as they go.
//!
//! Sources of the format: `include/uapi/linux/perf_event.h` of the kernel, and
//! `tools/perf/Documentation/perf.data-file-format.txt`.

mod attribute;
mod bytes;
mod chunk;
mod damage;
mod error;
mod event;
mod features;
mod format;
mod header;
mod inflated;
mod record;
mod recording;
mod sample;
mod tracepoints;
mod tracing_data;

pub use attribute::{Attribute, Clock};
pub use chunk::Chunk;
pub use damage::{Damage, Fault};
pub use error::OpenError;
pub use event::{Chain, Event, EventKind};
pub use features::{System, WallClock};
pub use format::{Field, Format};
pub use recording::{Recording, is_recording};
pub use tracepoints::{Meaning, Switch, SwitchedThread, Tracepoint, Woken};
