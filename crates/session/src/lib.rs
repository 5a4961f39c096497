//! Access to one opened trace: its tables, names of functions, progress and cancellation.
//!
//! [`TraceTables`] makes tables when they are needed, reports progress to an [`Observer`] and stops when the
//! observer is cancelled. [`Symbolication`] names functions, [`NewFile`] writes output files, and
//! [`NotRecorded`] states how to record a table that a trace lacks.

mod error;
mod lazy_cell;
mod missing_rows;
mod new_file;
mod observer;
mod stack_modules;
mod symbolication;
mod trace_tables;

pub use error::Error;
pub use lazy_cell::LazyCell;
pub use missing_rows::{NotRecorded, missing_rows};
pub use new_file::{FileError, FileProblem, NewFile};
pub use observer::{Amount, Observer, Task, Unobserved, watched};
pub use stack_modules::StackModules;
pub use symbolication::{MissingSymbols, SymbolOptions, SymbolOptionsError, Symbolication};
pub use trace_tables::TraceTables;

/// Warning text for files that were recorded on different systems and are read as one trace.
pub const SEVERAL_SYSTEMS: &str = "These files were recorded by different systems, or after another \
                                   boot: an id or a name can mean different things in each, and sums mix \
                                   them. Open the files one by one.";
