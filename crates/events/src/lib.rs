//! What Windows trace events mean: kernel classes, manifests, TraceLogging, WPP.
//!
//! [`Decoder`] answers for any event; the modules below it are the sources it asks.

pub mod built_in;
mod decode;
mod decoder;
pub mod event_info;
pub mod event_source;
pub mod kernel;
pub mod manifest;
pub mod schema;
mod sid;
pub mod status;
mod tdh;
mod text;
pub mod tracelogging;
mod value;
pub mod wpp;

pub use decode::{Fields, decode};
pub use decoder::{Decoded, Decoder, Identity, MetadataFault, is_metadata};
pub use text::{Ansi, Utf16};
pub use value::Value;
