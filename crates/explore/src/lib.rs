//! Query engine behind the views of a trace.
//!
//! A [`View`] is a small document: a table, its columns, a graph and a filter. Columns left of the golden
//! bar are keys, which group the rows. Columns right of it are aggregates, which are computed for each
//! group. An [`Explorer`] answers the requests of views from the stored tables of one trace. Answers contain
//! only the data that a view shows, never all rows.
//!
//! | request | answer |
//! |---|---|
//! | [`Explorer::timeline`] | values per time bucket and group |
//! | [`Explorer::pivot`] | groups of one level, with aggregates, sorted |
//! | [`Explorer::rows`] | single rows |
//! | [`Explorer::flame`], [`Explorer::butterfly`] | weights of stacks |
//! | [`Explorer::heat`], [`Explorer::histogram`] | distribution of values, over time or by group |
//! | [`Explorer::lanes`] | threads that ran on each CPU |
//!
//! Requests are stateless. A request stops when its cancellation flag is set. Decoded columns are cached up
//! to a memory limit, and concurrent requests share them. If an SQL query has the same result as the
//! request, the answer contains this query.
//!
//! # Ids
//!
//! A group has an id and a label. In a column of numbers (`cpu`, `priority`, `thread_id`, a wait reason),
//! the id is the number itself. The id of a process, thread or image is its row in `processes`, `threads` or
//! `images`. If the idle process has no row, its id is the number of rows. The id of a text is its index
//! among the texts of the column. The id of unknown values is `null`.
//!
//! # Rules for every answer
//!
//! - Times are nanoseconds since the trace's start. Time ranges include their start but not their end.
//! - Rows with a duration (a run, an interrupt, a process) are in a time range if they overlap it. Rows of
//!   length 0, and rows of all other tables, are in a time range if it contains their time.
//! - Sums of durations (ready times, waits, the times that samples represent) are divided among the time
//!   buckets that the durations cover.
//! - Unknown values are `null`, never 0.
//! - No request panics or exceeds its limits. A request that would exceed them is an error.

mod aggregates;
mod butterfly;
mod cache;
mod catalogue;
mod classes;
mod common_value;
mod context;
mod decode;
mod decoded_columns;
mod durations;
mod error;
mod explorer;
mod filter;
mod flame;
mod flame_union;
mod heat;
mod histogram;
mod in_view;
mod lanes;
mod names;
mod overview;
mod pivot;
mod presets;
mod query;
mod rows;
mod selected_rows;
mod selection_view;
mod stacks;
mod timeline;
mod trace;
mod value;
mod view;

pub use butterfly::{ButterflyAnswer, ButterflyRequest};
pub use catalogue::{ColumnInfo, ColumnKind, IntervalInfo, TableInfo};
pub use error::ExploreError;
pub use explorer::Explorer;
pub use filter::Condition;
pub use flame::{FlameAnswer, FlameRequest, Nodes};
pub use heat::{HeatAnswer, HeatRequest};
pub use histogram::{HistogramAnswer, HistogramRequest, HistogramSeries};
pub use lanes::{CpuLane, LanesAnswer, LanesRequest, RunSpans};
pub use pivot::{GroupSort, PivotAnswer, PivotGroup, PivotRequest};
pub use presets::Preset;
pub use rows::{RowsAnswer, RowsRequest};
pub use timeline::{Function, TimelineAnswer, TimelineRequest, TimelineSeries};
pub use trace::Progress;
pub use value::{Id, Number, Value};
pub use view::{Drawn, Graph, GraphKind, View};
