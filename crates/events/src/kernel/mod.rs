//! The kernel's classic events: their classes and layouts as a table, and views of the payloads
//! that matter most.

mod names;
mod table;

pub use names::*;
pub use table::{Class, class_name, classes, event_name, hook_name, schema};
