//! Numbers, durations and names as people read and write them, and text of traces made harmless for each kind of
//! output.
//!
//! Functions that format return plain text without colour. Functions that parse return `None` for invalid text. The
//! caller reports the error, because only the caller knows the option or field with the text.

mod columns;
mod likeness;
mod name;
mod numbers;
mod parse;
mod phrases;
mod printable;
mod sentence;

pub use columns::{Columns, Side};
pub use likeness::{closest, closest_one};
pub use name::{Name, QuotedName};
pub use numbers::{duration, grouped, moment, percent, size};
pub use parse::{DefaultUnit, parse_bytes, parse_duration};
pub use phrases::{capitalized, counted, listed};
pub use printable::{JsonText, MarkdownCode, Printable, Quoted, TomlText, csv_cell};
pub use sentence::{Part, Sentence};
