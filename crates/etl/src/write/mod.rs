//! Writer of valid logs.
//!
//! [`Writer`] writes a log file like a session of Windows: one header buffer, then the buffers of
//! all CPUs in the order in which they are filled or flushed. At the end, it overwrites the header
//! with the final values. [`Session`] defines the header. Its field `mode` decides whether the log
//! has the form of a live session's log or of a relogger's log.
//!
//! The other items build special events and parts of events: [`TraceLogging`] events, descriptions
//! of manifest events ([`EventInfo`], [`EventMap`]), identities of images ([`ImageId`], [`Rsds`],
//! [`FileVersion`]), extended items ([`extended`]) and events about a session ([`companion`]).
//!
//! ```
//! use std::io::Cursor;
//!
//! use etl::write::{ProviderEvent, Session, TraceLogging, Value, Writer, provider_traits};
//! use etl::{Descriptor, Guid, ext_type};
//!
//! let mut event = TraceLogging::new("Frame");
//! event.field("Number", Value::U32(7)).field("Scene", Value::Utf16("menu"));
//! let traits = provider_traits("Game", None);
//!
//! let mut writer = Writer::new(Cursor::new(Vec::new()), Session::default())?;
//! let header = ProviderEvent {
//!     provider: Guid([1; 16]),
//!     descriptor: Descriptor { channel: 11, level: 5, ..Descriptor::default() },
//!     time: 1_000,
//!     thread_id: 8,
//!     process_id: 4,
//!     activity: Guid::ZERO,
//!     extended: &[
//!         (ext_type::TRACELOGGING_SCHEMA, &event.schema()),
//!         (ext_type::PROVIDER_TRAITS, &traits),
//!     ],
//! };
//! writer.provider(0, header, event.payload())?;
//! let log = writer.finish()?.into_inner();
//! # assert!(!log.is_empty());
//! # Ok::<(), etl::write::WriteError>(())
//! ```

pub mod companion;
mod error;
mod event;
mod event_metadata;
pub mod extended;
mod image_id;
mod injected;
mod log_header;
mod payload;
mod session;
mod trace_logging;
mod writer;

pub use companion::PartitionInfo;
pub use error::WriteError;
pub use event::{ClassicEvent, KernelEvent, ProviderEvent};
pub use event_metadata::{Count, EventInfo, EventMap, Length, Property, PropertyKind};
pub use image_id::{FileVersion, ImageId, Rsds};
pub use injected::Injected;
pub use payload::Payload;
pub use session::Session;
pub use trace_logging::{TraceLogging, Value, provider_traits};
pub use writer::{Loss, Writer};
