//! Numbers, durations and names as people read and write them, and text of traces made harmless for each
//! kind of output.
//!
//! Functions that format return plain text without colour. Functions that parse return `None` for invalid
//! text. Their callers know the option or field that has the text, and name it in the error.

mod columns;
mod likeness;
mod numbers;
mod parse;
mod printable;
mod sentence;

pub use columns::{Columns, Side};
pub use likeness::{closest, closest_one};
pub use numbers::{duration, grouped, moment, percent, size};
pub use parse::{DefaultUnit, parse_bytes, parse_duration};
pub use printable::{JsonText, MarkdownCode, Printable, Quoted, csv_cell};
pub use sentence::{capitalized, counted, listed};
