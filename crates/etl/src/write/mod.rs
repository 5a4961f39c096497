//! Writing valid logs: the reader's mirror image.
//!
//! [`Writer`] makes the container as a session of Windows would: one header buffer, then buffers
//! per CPU in the order in which they fill or are flushed, patched at the end with what is known
//! only then. [`Session`] says what the log is to say of itself; its `mode` decides whether it
//! looks like a live session's or like a relogger's.
//!
//! The other items make the bytes of events that belong to a log rather than to one provider:
//! [`TraceLogging`] events, descriptions of manifest events ([`EventInfo`], [`EventMap`]), the
//! identity of images ([`ImageId`], [`Rsds`], [`FileVersion`]), extended items ([`extended`]) and
//! what a session says about itself ([`companion`]).
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
