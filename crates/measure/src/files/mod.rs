//! Probe that measures the time to read many files with each method of the system.
//!
//! Every [`FilesMethod`] reads the same [`FileSet`] in pieces of [`CHUNK`] bytes and sums the bytes. Before
//! the measurement, an ordinary read determines the sum of each file. If a method finds another sum, the
//! measurement fails. Opening, set-up (threads, queues, registrations), reading (submitting and waiting) and
//! summing are timed separately. The [`CacheState`] is prepared before every run and is part of the setting's
//! name. The number of bytes that the device delivered shows whether the files were really in the required
//! cache state.

mod cache;
mod chunks;
mod drive;
mod error;
#[cfg(unix)]
mod mapped;
mod method;
mod opening;
#[cfg(windows)]
mod overlapped;
mod positional;
mod probe;
mod ring;
mod run;
mod set;
mod sums;
#[cfg(target_os = "linux")]
mod uring;
mod watch;

pub use cache::CacheState;
pub use chunks::CHUNK;
pub use error::FilesError;
pub use method::{FilesMethod, UringMode};
pub use probe::{FilesMeasured, FilesProbe};
pub use set::{FileSet, FileSizes};
pub use watch::FilesPhase;
