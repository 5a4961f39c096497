//! What Windows trace events mean.

pub mod schema;
mod value;

pub use value::Value;
