//! What Windows trace events mean.

mod decode;
pub mod kernel;
pub mod schema;
mod sid;
mod text;
mod value;

pub use decode::{Fields, decode};
pub use text::{Ansi, Utf16};
pub use value::Value;
