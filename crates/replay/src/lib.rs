//! Would a change help? Replay of a recorded trace in the model of Windows (crate `sim`), with the change.
//!
//! [`extract`] makes a [`RecordedWorkload`] workload from the tables of a trace; [`write()`](fn@write) and [`read`] keep it in
//! a file. [`predict`] replays it as recorded, which shows how well the model reproduces the record, and then with
//! [`Change`]s.

mod change;
mod extract;
mod file;
mod predict;
mod recorded_workload;
mod search;
mod summary;
mod variants;
mod words;

pub use change::{Change, ChangeError, WrongChange};
pub use extract::{TABLES, extract};
pub use file::{FileError, is_workload, read, write};
pub use predict::{
    Bar, Metric, PredictError, PredictedMetric, Prediction, ReplayError, Row, Scope, predict,
};
pub use recorded_workload::{Lack, Note, Record, RecordedWorkload, Refusal};
pub use search::{Candidate, search};
pub use sim::replay::RunError;
pub use summary::{Spread, Summary};
