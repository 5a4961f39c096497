//! A trace for other programs.
//!
//! Each format is made of tables, chunk by chunk.

pub(crate) mod firefox;
mod modules;
pub(crate) mod parquet;
mod part;
pub(crate) mod perfetto;
mod roster;

pub(crate) use part::Part;
