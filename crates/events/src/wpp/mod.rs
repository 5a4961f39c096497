//! WPP messages: what a driver's or service's `DoTraceMessage` call said.
//!
//! A WPP event carries a GUID, a message number and packed arguments, nothing more. The format
//! string and the argument types are in a TMF file, which `tracepdb` extracts from the PDB of the
//! traced binary. [`TmfSet`] holds such files; [`decode`] joins them with an event.
//!
//! Facts: Microsoft's driver documentation on trace message format files, WPP extended format
//! specifications and custom WPP types; `FormatMessage` for `%10!05d!`; and, for how `tracefmt`
//! words a value, its output as quoted by the tests of `guscatalano/findneedle` (MIT).

mod format;
mod item;
mod message;
mod tmf;
mod words;

pub use item::{Base, Item};
pub use message::{WppMessage, decode, decode_payload};
pub use tmf::{Argument, Message, Tmf, TmfError, TmfSet, parse_tmf};
