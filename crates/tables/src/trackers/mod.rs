//! Who an id or an address was at a moment.

mod files;
mod images;
mod lifetimes;
mod processes;
mod threads;

pub(crate) use files::FileTracker;
pub use images::ImageTracker;
pub use processes::ProcessTracker;
pub use threads::ThreadTracker;
