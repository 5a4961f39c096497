//! What Windows trace events mean.

pub mod built_in;
pub mod event_info;
pub mod event_source;
pub mod manifest;
pub mod schema;
mod tdh;
pub mod tracelogging;
mod value;

pub use value::Value;
