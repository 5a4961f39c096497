//! SQL over the tables of traces.
//!
//! A [`Session`] executes statements on one or several traces. The first statement that uses a table builds
//! it. A table is read chunk by chunk, and only the needed columns. It is never loaded as a whole.
//!
//! ```no_run
//! use std::sync::Arc;
//! use sql::{Settings, NamedTrace, Session};
//! use tables::{Cache, Options, Store};
//!
//! let store = Arc::new(imports::open_store(&["trace.etl".into()], Cache::Off)?);
//! let trace = NamedTrace { name: "trace.etl".into(), store };
//! let session = Session::new(vec![trace], Settings::default())?;
//! for statement in sql::parse("SELECT * FROM cpu_by_process ORDER BY cpu_ns DESC")? {
//!     let query = session.prepare(&statement, Options::default())?;
//!     for batch in query.batches(&|| true)? {
//!         println!("{} rows", batch?.num_rows());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No other crate uses DataFusion, and this crate has no public type of DataFusion.

mod arithmetic;
mod cancellation;
mod columns;
mod error;
mod expansion;
mod functions;
mod large_stack;
mod lookups;
mod projections;
mod provider;
mod reference;
mod scan;
mod session;
mod spills;
mod statement;
mod time_range;
mod traces;
mod views;

pub use error::{Place, RunError, SqlError};
pub use functions::{Symbols, function_signatures};
pub use reference::reference;
pub use session::{Batches, Query, QueryCount, Session, Settings};
pub use statement::{Statement, parse};
pub use traces::NamedTrace;
pub use views::{view_names, views};
