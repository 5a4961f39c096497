//! What a picture needs, computed over plain slices.
//!
//! A trace's rows come sorted by time and everything in them that is counted by (process, thread,
//! CPU, module, stack) is a small dense id. So a kernel here is `sums[id] += value` over columns
//! given as slices, and a join by time is one merge: no hashing, no tables, no queries.
//!
//! | kernel | answers |
//! |---|---|
//! | [`Timeline`] | how much, per slice of time and id |
//! | [`Pivot`] | one level of groups under a path of ids, summarised and ranked |
//! | [`Flame`] | where the weight of stacks lies: a [`CallTree`], or the callers and callees of one frame |
//! | [`HeatMap`], [`Histogram`] | how values are spread, over time or per id |
//! | [`AsOfJoin`] | for each row the last one of another table at or before it |
//! | [`OverlapJoin`] | which intervals of two tables overlap, and how long |
//!
//! Each is made once, is given chunks of rows by `add`, and gives its answer by `finish`. Which rows
//! of a chunk count is said by [`Rows`], which also carries the flag that stops a long pass. Kernels
//! that only add up can `merge` what two threads have seen.
//!
//! ```
//! use views::{Lanes, Rows, TimeBuckets, TimeRange, Timeline};
//!
//! let buckets = TimeBuckets::new(TimeRange::new(0, 1_000), 10);
//! let mut timeline = Timeline::new(buckets, Lanes::every(2))?;
//! let (times, processes, bytes) = ([5, 120, 130], [0, 1, 1], [512, 4096, 64]);
//! timeline.add_values(&times, &processes, &bytes, &Rows::of(0..3))?;
//! let series = timeline.finish(5);
//! assert_eq!(series[0].lane, views::Lane::Id(1));
//! assert_eq!(series[0].buckets[1].sum(), Some(4160));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds for every kernel
//!
//! - **Unknown** is [`NULL`] in a column of times or measures and [`NULL_ID`] in one of ids. A
//!   sorted column has its unknown times first, and no range holds them. An unknown measure counts
//!   in no sum, an unknown id is a group of its own.
//! - **An id beyond the number promised** is taken as unknown.
//! - **Sums** are exact while they are made and saturate when they are asked for.
//! - **Intervals** are half open, `start..end`. One that ends before it starts, or whose start or
//!   end is unknown, is left out and counted as skipped.
//! - **Nothing in a column panics.** Columns that are sorted wrongly give wrong answers, no more.
//!   What does panic are mistakes of the calling code: columns shorter than the rows asked for,
//!   accumulators of different shapes merged.
//! - **Memory** follows the shape asked for (buckets, ids), never the rows, and a shape beyond
//!   [`TooLarge::LIMIT`] is refused.

mod as_of_join;
mod bounds;
mod call_tree;
mod flame;
mod heat_map;
mod histogram;
mod id_set;
mod lanes;
mod overlap_join;
mod percentiles;
mod pivot;
mod rows;
mod summary;
mod time_buckets;
mod time_range;
mod timeline;
mod too_large;

pub use as_of_join::{AsOfJoin, NO_ROW};
pub use bounds::Bounds;
pub use call_tree::{CallNode, CallTree, Stacks};
pub use flame::{Butterfly, Flame};
pub use heat_map::HeatMap;
pub use histogram::Histogram;
pub use id_set::IdSet;
pub use lanes::{Lane, Lanes};
pub use overlap_join::{Overlap, OverlapJoin};
pub use percentiles::Percentiles;
pub use pivot::{Aggregate, Group, Level, Number, Order, Pivot, PivotSpec};
pub use rows::{Cancelled, Rows};
pub use summary::Summary;
pub use time_buckets::TimeBuckets;
pub use time_range::{Intervals, TimeRange, rows_within};
pub use timeline::{Series, Timeline};
pub use too_large::TooLarge;

/// An unknown time or measure.
pub const NULL: i64 = i64::MIN;

/// An unknown id.
pub const NULL_ID: u32 = u32::MAX;
