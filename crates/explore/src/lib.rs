//! What a view of a trace asks, answered.
//!
//! A [`View`] is a small document: a table, columns around a golden bar (those left of it group,
//! those right of it are summed up), a graph and a filter. An [`Explorer`] answers the requests that
//! come of it over the stored tables of one trace. Rows stay here, pixels are the caller's: every
//! answer is as small as what is shown.
//!
//! | request | answer |
//! |---|---|
//! | [`TimelineRequest`] | how much, per slice of time and group |
//! | [`PivotRequest`] | the groups of one level, summed up and sorted |
//! | [`RowsRequest`] | the rows themselves |
//! | [`FlameRequest`], [`ButterflyRequest`] | where the weight of stacks lies |
//! | [`HeatRequest`], [`HistogramRequest`] | how values are spread, over time or by group |
//! | [`LanesRequest`] | who ran on each CPU |
//!
//! Requests are stateless and stop when their flag is set. Columns are decoded once, kept in a
//! bounded memory from which those longest unused go first, and shared by requests at the same time.
//! An answer carries the SQL that gives the same numbers, where there is such.
//!
//! # Ids
//!
//! A group has an id and a label. The id of a column of numbers (`cpu`, `priority`, `thread_id`, a
//! wait reason) is the number itself; that of a process, thread or image is its row in `processes`,
//! `threads` or `images` (the idle process, where it has no row, comes after the last); that of text
//! is its place among the column's texts. `null` is the unknown.
//!
//! # What holds for every answer
//!
//! - Times are nanoseconds since the trace's start; ranges are half open.
//! - A row that lasts (a run, an interrupt, a process) is in a range if it overlaps it; any other, and
//!   one that lasts no time, if its time lies in it.
//! - Sums of what are stretches of time (times ready, waits, what samples stand for) are spread over the
//!   slices of a timeline that they cover.
//! - Unknown is `null`, never 0.
//! - No request panics or allocates more than its bounds allow: what asks for more is refused.

#![forbid(unsafe_code)]

mod aggregates;
mod butterfly;
mod catalogue;
mod classes;
mod columns;
mod decode;
mod error;
mod explorer;
mod filter;
mod flame;
mod heat;
mod histogram;
mod in_view;
mod lanes;
mod names;
mod offered;
mod overview;
mod pivot;
mod presets;
mod query;
mod rows;
mod same;
mod selection;
mod stacks;
mod stretches;
mod timeline;
mod trace;
mod value;
mod view;

pub use butterfly::{ButterflyAnswer, ButterflyOrder, ButterflyRequest, FunctionWeight};
pub use catalogue::{ColumnInfo, ColumnKind, IntervalInfo, TableInfo};
pub use error::ExploreError;
pub use explorer::{Explorer, Progress};
pub use filter::Condition;
pub use flame::{FlameAnswer, FlameRequest, Nodes};
pub use heat::{HeatAnswer, HeatRequest};
pub use histogram::{HistogramAnswer, HistogramRequest, HistogramSeries};
pub use lanes::{
    CpuLane, InterruptSpans, LaneLabels, LanesAnswer, LanesRequest, RunSpans, Spans, Wake,
};
pub use overview::OverviewAnswer;
pub use pivot::{GroupSort, PivotAnswer, PivotGroup, PivotRequest};
pub use presets::Preset;
pub use rows::{RowColumn, RowsAnswer, RowsRequest};
pub use timeline::{Function, RestSeries, TimelineAnswer, TimelineRequest, TimelineSeries};
pub use value::{Id, Number, Value};
pub use view::{Drawn, Graph, GraphKind, Sort, View};
