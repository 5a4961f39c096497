//! Decoding of Windows trace events: kernel classes, manifests, TraceLogging, WPP.
//!
//! [`Decoder`] decodes any event. The other modules provide the descriptions that the decoder uses. A decoder
//! knows the kernel's classes and a selection of manifests. It learns the descriptions in a trace, and
//! accepts manifests and TMF files. In a trace, a description can come after the events that it describes, so
//! the caller reads the trace twice:
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
//! [`kernel`] has views of frequent kernel events. They are plain structs and need no decoder:
//!
//! ```
//! use events::kernel::ReadyThread;
//!
//! // Payload: a DPC made thread 0x1234 ready because the thread's wait ended. The thread gets no boost.
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
pub mod ids;
mod json;
pub mod kernel;
pub mod manifest;
pub mod schema;
mod sid;
mod simulated;
mod span;
mod status;
mod tdh;
mod text;
pub mod tracelogging;
mod value;
pub mod wpp;

pub use decode::{Fields, decode};
pub use decoder::{Decoded, Decoder, Identity, MetadataFault, is_metadata};
pub use json::OwnNames;
pub use simulated::is_simulated;
pub use span::{Content, Span, Spans};
pub use text::{Ansi, Utf16};
pub use value::Value;
