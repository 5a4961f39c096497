//! Files of unknown origin: a sequence of bytes that several threads read, regular files only, and free space on disks.

pub mod free_space;
mod regular_file;
mod source;

pub use free_space::NoSpace;
pub use regular_file::{first_bytes, is_same_file, open_file, other_kind, read_file};
pub use source::{FileSource, Source};
