//! Reads Windows event trace logs (`.etl`) on any operating system.

mod archive;
mod buffer;
mod clock;
pub mod compress;
mod damage;
mod error;
mod event;
mod guid;
pub mod le;
mod logfile;
mod open;
mod reader;
mod scan;
mod source;
mod time_order;
mod trace;
pub mod write;

pub use archive::{ArchiveError, Member, MemberData, extract, is_archive};
pub use buffer::{BufferRef, HEADER_SIZE as BUFFER_HEADER_SIZE, flag as buffer_flag};
pub use clock::{Clock, ClockKind};
pub use damage::{Damage, Fault, FaultKind};
pub use error::OpenError;
pub use event::{Descriptor, Event, ExtendedItem, ExtendedItems, HeaderKind, Place, ext_type};
pub use guid::{Guid, ParseGuidError};
pub use logfile::{LogFileHeader, mode};
pub use open::open;
pub use reader::{BufferReader, Events};
pub use scan::Segment;
pub use source::{FileSource, Source};
pub use time_order::TimeOrder;
pub use trace::{CpuStream, Trace};
