//! WPP messages: output of the `DoTraceMessage` calls of drivers and services.
//!
//! A WPP event has only a GUID, a message number and packed arguments. The format string and the argument
//! types are in a TMF file, which `tracepdb` extracts from the PDB of the traced binary. [`TmfSet`] contains
//! the messages of TMF files. [`decode`] uses these messages to decode an event.
//!
//! Sources: Microsoft's driver documentation on trace message format files, WPP extended format
//! specifications and custom WPP types; `FormatMessage` for `%10!05d!`; for the wording of values, the output
//! of `tracefmt` quoted in the tests of `guscatalano/findneedle` (MIT).

mod format;
mod item;
mod message;
mod tmf;
mod words;

pub use item::{Base, Item};
pub use message::{WppMessage, decode, decode_payload};
pub use tmf::{Argument, Message, Tmf, TmfError, TmfSet, parse_tmf};
