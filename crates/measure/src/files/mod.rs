//! How long it takes to read many files, by each way that the system has.
//!
//! Every [`FilesMethod`] reads the same [`FileSet`] in pieces of [`CHUNK`] bytes and sums all of them; what
//! it finds in each file must be what an ordinary read found before, or it is an error that names
//! the file. Opening, setting up (threads, queues, registrations), reading (submitting and waiting)
//! and summing are timed apart. The [`CacheState`] is made anew before every run and is part of the
//! setting's name, and what the device had to deliver says whether it was so.

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
