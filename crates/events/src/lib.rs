//! What Windows trace events mean.

pub mod schema;
mod value;
pub mod wpp;

pub use value::Value;
