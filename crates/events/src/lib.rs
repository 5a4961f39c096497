//! What Windows trace events mean.

pub mod schema;
pub mod status;
mod value;
pub mod wpp;

pub use value::Value;
