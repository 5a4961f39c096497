//! What Windows trace events mean.

mod decode;
pub mod kernel;
pub mod schema;
mod text;
mod value;

pub use decode::{Fields, decode};
pub use value::Value;
