//! How to capture the evidence.
//!
//! A finding is only as good as its capture. [`needs`] is the one table of what each theory must have
//! recorded to be judged; `explain` says from it what to record, and an [`Investigation`] collects
//! from it what a [`Capture`] for a question holds. A [`Kit`] is that capture as files: a profile of
//! Windows Performance Recorder, scripts, and what it costs and what it will let `explain` judge.
//! [`wprp`] reads profiles, anybody's, and checks them.

mod buffers;
mod capture;
mod cost;
mod here;
pub mod input;
mod investigation;
mod kernel;
mod kind;
mod kit;
pub mod needs;
mod provider;
pub mod wprp;

pub use buffers::{Buffers, Machine};
pub use capture::{Capture, Enabled};
pub use cost::Cost;
pub use investigation::Investigation;
pub use kernel::{Keyword, StackWalk};
pub use kind::{Kind, RecordedBy};
pub use kit::{Command, Detail, File, Kit, Mode, SETTINGS, Variant, commands};
pub use needs::Needs;
pub use provider::Provider;
