//! What Windows trace events mean: kernel classes, manifests, TraceLogging, WPP.
//!
//! [`Decoder`] answers for any event; the modules below it are the sources it asks. It knows the
//! kernel's classes and a selection of manifests, learns what the trace says about itself, and can
//! be given manifests and TMF files. Descriptions may stand behind the events that they are about,
//! so a trace is walked twice:
//!
//! ```no_run
//! use events::Decoder;
//!
//! let trace = etl::open(&["trace.etl".into()])?;
//! let mut decoder = Decoder::new();
//! let mut events = trace.events();
//! while let Some(event) = events.next() {
//!     decoder.learn(&event);
//! }
//! decoder.finish_learning();
//!
//! let mut events = trace.events();
//! while let Some(event) = events.next() {
//!     let decoded = decoder.decode(&event);
//!     println!("{} ns {}", event.time_ns(), decoded.identity.name.as_deref().unwrap_or("?"));
//!     for (name, value) in &decoded.fields.values {
//!         println!("    {name}: {value}");
//!     }
//! }
//! # Ok::<(), etl::OpenError>(())
//! ```
//!
//! Kernel events that are read by the million have views in [`kernel`], which need no decoder:
//!
//! ```
//! use events::kernel::ReadyThread;
//!
//! // Thread 0x1234, end of a wait, no boost, made ready by a DPC.
//! let payload = [0x34, 0x12, 0, 0, 1, 0, 1, 0];
//! let ready = ReadyThread::read(&payload, 2, 8).expect("the payload is whole");
//! assert_eq!(ready.thread_id, 0x1234);
//! assert!(ready.by_dpc());
//! ```

pub mod built_in;
mod decode;
mod decoder;
pub mod event_info;
pub mod event_source;
mod json;
pub mod kernel;
pub mod manifest;
pub mod schema;
mod sid;
mod span;
pub mod status;
mod tdh;
mod text;
pub mod tracelogging;
mod value;
pub mod wpp;

pub use decode::{Fields, decode};
pub use decoder::{Decoded, Decoder, Identity, MetadataFault, is_metadata};
pub use json::OwnNames;
pub use span::{Content, Span, Spans};
pub use text::{Ansi, Utf16};
pub use value::Value;
