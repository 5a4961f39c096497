//! Reads Windows event trace logs (`.etl`) on any operating system.

mod archive;
mod clock;
pub mod compress;
mod event;
mod guid;
pub mod le;

pub use archive::{ArchiveError, Member, MemberData, extract, is_archive};
pub use clock::{Clock, ClockKind};
pub use event::{Descriptor, Event, ExtendedItem, ExtendedItems, HeaderKind, Place, ext_type};
pub use guid::{Guid, ParseGuidError};

/// An opened trace.
pub struct Trace;
