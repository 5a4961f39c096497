//! Trackers. They find the process, thread, image or file to which an id, address or key belonged at a given
//! time.

mod files;
mod finders;
mod images;
mod lifetimes;
mod processes;
mod threads;

pub use files::FileTracker;
pub use finders::Trackers;
pub(crate) use finders::{ImageFinder, KnownThread, ThreadFinder, ThreadIds};
pub use images::ImageTracker;
pub use lifetimes::{Life, Lifetimes};
pub use processes::ProcessTracker;
pub use threads::ThreadTracker;
