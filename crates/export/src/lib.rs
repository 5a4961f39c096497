//! Exports of a trace to other programs: Parquet, Perfetto, the Firefox Profiler, Wireshark.
//!
//! Each format is written from the tables of the trace, chunk by chunk.

mod error;
pub mod firefox;
mod modules;
pub mod parquet;
mod part;
pub mod pcapng;
pub mod perfetto;
mod roster;

pub use error::{Error, PartitionProblem};
pub use part::Part;
