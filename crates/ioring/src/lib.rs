#![doc = include_str!("../README.md")]

mod buffer;
mod capabilities;
mod entry;
mod error;
mod in_flight;
mod library;
mod ring;
#[cfg(any(all(windows, target_pointer_width = "64"), test))]
mod sqe;
mod system;

pub use buffer::Buffer;
pub use capabilities::{Capabilities, Interface, Operation, Version};
pub use entry::FlushMode;
pub use error::{Code, Error, Refused};
pub use in_flight::{Memory, Target, Ticket};
pub use library::Library;
pub use ring::{Completion, Ring};
