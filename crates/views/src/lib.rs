//! Aggregation kernels over plain slices, for graphs and pivot tables.
//!
//! Rows of a trace are sorted by time. They are grouped by processes, threads, CPUs, modules or stacks, which have
//! small dense ids. Therefore a kernel can compute `sums[id] += value` over columns that are slices. It needs no hash
//! maps, tables or queries.
//!
//! | kernel | result |
//! |---|---|
//! | [`Timeline`] | sums per time bucket and id |
//! | [`Pivot`] | one level of groups under a path of ids |
//! | [`Flame`] | weights of stacks: a [`CallTree`], or the callers and callees of one frame |
//! | [`HeatMap`], [`Histogram`] | distribution of values, over time or per id |
//! | [`Percentiles`] | percentiles in bounded memory |
//!
//! A kernel is created once, receives chunks of rows by `add`, and returns its result by `finish`. [`Rows`] selects
//! the rows of a chunk. It also has the flag that cancels a long pass. `merge` adds the data of another kernel, so
//! several threads can each fill a separate kernel.
//!
//! ```
//! use views::{Lanes, Rows, TimeBuckets, TimeRange, Timeline};
//!
//! let buckets = TimeBuckets::new(TimeRange::new(0, 1_000), 10);
//! let mut timeline = Timeline::new(buckets, Lanes::every(2))?;
//! let (times, processes, bytes) = ([5, 120, 130], [0, 1, 1], [512, 4096, 64]);
//! timeline.add_values(&times, &processes, &bytes, &Rows::from_range(0..3))?;
//! let series = timeline.finish();
//! assert_eq!(series[0].lane, views::Lane::Id(1));
//! assert_eq!(series[0].buckets[1].sum(), Some(4160));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules for every kernel
//!
//! - **An unknown value** is [`NULL`] in a column of times or measures and [`NULL_ID`] in a column of
//!   ids. A sorted column starts with its unknown times, and no time range contains them. Sums ignore
//!   unknown measures. Unknown ids form a separate group.
//! - **An id at or above the declared bound** counts as unknown.
//! - **Sums** never overflow. A [`Summary`] is exact internally, and saturates when it is read. The weights of
//!   stacks saturate when they are added.
//! - **Intervals** are half open, `start..end`. An interval that ends before it starts, or whose start
//!   or end is unknown, is ignored.
//! - **No column value causes a panic.** Wrongly sorted columns only give wrong results. Mistakes of
//!   the calling code do cause a panic: columns that are shorter than the rows, or `merge` of kernels
//!   with different shapes.
//! - **Memory** depends on the requested shape (buckets, ids), never on the number of rows. A shape
//!   above [`TooLarge::LIMIT`] is refused.

mod bounds;
mod call_tree;
mod distribution;
mod flame;
mod heat_map;
mod histogram;
mod id_set;
mod lanes;
mod percentiles;
mod pivot;
mod rows;
mod summary;
mod time_buckets;
mod time_range;
mod timeline;
mod too_large;

pub use bounds::Bounds;
pub use call_tree::{CallNode, CallTree, Stacks};
pub use distribution::Distribution;
pub use flame::{Butterfly, Flame};
pub use heat_map::HeatMap;
pub use histogram::Histogram;
pub use id_set::IdSet;
pub use lanes::{Lane, Lanes};
pub use percentiles::Percentiles;
pub use pivot::{Aggregate, Group, Level, Number, Pivot, PivotSpec};
pub use rows::{Cancelled, Rows};
pub use summary::Summary;
pub use time_buckets::TimeBuckets;
pub use time_range::{Intervals, TimeRange, rows_within};
pub use timeline::{Series, Timeline};
pub use too_large::TooLarge;

/// Unknown time or measure.
pub const NULL: i64 = i64::MIN;

/// Unknown id.
pub const NULL_ID: u32 = u32::MAX;
