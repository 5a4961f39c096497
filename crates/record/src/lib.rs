//! Recording of evidence: the events to record, kits that record them, and a checker of profiles.
//!
//! A theory is one possible cause of a delay, which `laglab explain` examines in a trace. [`needs`] lists the kinds
//! of events that each theory and each table needs. [`advice`] formats these kinds as options of the recorders. An
//! [`Investigation`] is a question of a user with several theories. It combines the needs of these theories into a
//! [`Capture`]: the events that a recording enables. A [`Kit`] writes the capture as a profile of Windows Performance
//! Recorder (WPR), scripts and a README. [`wprp`] reads and checks profiles from any source.

mod advice;
mod buffers;
mod capture;
mod cost;
pub mod input;
mod investigation;
mod kernel;
mod kind;
mod kit;
pub mod linux;
mod memory;
mod missing_data;
pub mod needs;
mod provider;
mod this_machine;
pub mod wprp;

pub use advice::advice;
pub use buffers::{Buffers, Machine};
pub use capture::{Capture, EnabledProvider};
pub use cost::Cost;
pub use investigation::Investigation;
pub use kernel::{Keyword, StackWalk};
pub use kind::{Kind, RecorderOption};
pub use kit::{Command, Detail, File, Kit, Mode, SETTINGS, Variant, commands};
pub use memory::available_memory;
pub use missing_data::MissingData;
pub use needs::Needs;
pub use provider::Provider;
