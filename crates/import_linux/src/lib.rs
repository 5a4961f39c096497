//! Recordings of Linux (`perf.data`, `trace.dat`, and their text) as tables. Rows of events are joined with processes, threads and other
//! data by the same code as the rows of traces of Windows.
//!
//! [`LinuxRecording`] implements [`tables::Recording`]: `whole` makes the tables of the whole recording, `rows` those of
//! its events. [`LinuxDecoder`] gives names and values of events.

mod code_maps;
mod decoder;
mod freezes;
mod images;
mod lives;
mod proc_facts;
mod recording;
mod routines;
mod rows;
mod sampling;
mod states;
mod wait_stacks;
mod whole;

pub use decoder::LinuxDecoder;
pub use proc_facts::path_of as facts_path;
pub use recording::{LinuxRecording, OpenError, companions, is_recording};
