//! What Windows trace events mean: kernel classes, manifests, TraceLogging, WPP.
//!
//! [`Decoder`] answers for any event; the modules below it are the sources it asks.

mod decode;
mod decoder;
pub mod kernel;
pub mod schema;
mod sid;
pub mod status;
mod text;
mod value;
pub mod wpp;

pub use decode::{Fields, decode};
pub use decoder::{Decoded, Decoder, Identity};
pub use text::{Ansi, Utf16};
pub use value::Value;
