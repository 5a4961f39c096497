//! Recording of evidence: the events to record, kits that record them, and a checker of profiles.
//!
//! [`needs`] lists the kinds of events that each theory and table needs, and [`advice`] formats them as
//! options of the recorders. An [`Investigation`] combines the needs of its theories to a [`Capture`]. A
//! [`Kit`] writes the capture as a profile of Windows Performance Recorder, scripts and a README. [`wprp`]
//! reads and checks profiles from any source.

mod advice;
mod buffers;
mod capture;
mod cost;
pub mod input;
mod investigation;
mod kernel;
mod kind;
mod kit;
pub mod needs;
mod provider;
mod this_machine;
pub mod wprp;

pub use advice::{advice, merged};
pub use buffers::{Buffers, Machine};
pub use capture::{Capture, Enabled};
pub use cost::Cost;
pub use investigation::Investigation;
pub use kernel::{Keyword, StackWalk};
pub use kind::{Kind, RecordedBy};
pub use kit::{Command, Detail, File, Kit, Mode, SETTINGS, Variant, commands};
pub use needs::Needs;
pub use provider::Provider;
