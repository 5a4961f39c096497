//! Heat maps, which show the distribution of values over time.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{HeatMap, Rows, TimeBuckets};

use crate::classes::{Classes, MAX_CLASSES};
use crate::context::{Context, check_bounds, range_of};
use crate::query::{self, RangeRule};
use crate::selected_rows::SelectedRows;
use crate::timeline::MAX_BUCKETS;
use crate::{Condition, ExploreError};

/// Request for a heat map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct HeatRequest {
    /// Name of the table.
    pub table: String,
    /// Name of the column of numbers.
    pub value: String,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Number of time buckets, 1 to 4000.
    pub buckets: u32,
    /// Maximum number of classes of values, 1 to 256.
    pub rows: u32,
    /// Smallest and largest value that the classes cover; the smallest and largest value of the rows if
    /// absent.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// Heat map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HeatAnswer {
    /// Start of the first bucket, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End of the last bucket, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// Length of a bucket, in nanoseconds.
    pub bucket_ns: i64,
    /// Number of buckets.
    pub buckets: usize,
    /// Bounds of the classes: class `i` contains values above `bounds[i]`, up to and including
    /// `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// Numbers of values: a list for each time bucket, with a number for each class.
    pub counts: Vec<Vec<u64>>,
    /// Number of values that are larger than all classes.
    pub above: u64,
    /// Number of values that are smaller than all classes. They are usually zeros.
    pub below: u64,
    /// Unit of the values.
    pub unit: String,
    /// SQL query that returns the same numbers.
    pub sql: String,
}

pub(crate) fn answer(
    context: Context<'_>,
    request: &HeatRequest,
) -> Result<HeatAnswer, ExploreError> {
    check_bounds("buckets", request.buckets.into(), 1, MAX_BUCKETS)?;
    check_bounds("rows", request.rows.into(), 1, MAX_CLASSES)?;
    let def = crate::catalogue::table(&request.table)?;
    let column = def.number(&request.value)?;
    range_of(request.range)?;
    let table = context.open(&request.table)?;
    let span = table.span(request.range)?;
    let selected = SelectedRows::new(&table, RangeRule::Moment, Some(span), &request.filter)?;
    let times = table.times()?;
    let numbers = table.measures(column)?;
    let classes = Classes::for_rows(&selected, &numbers, request.values, request.rows)?;
    let buckets = TimeBuckets::new(span, request.buckets as usize);
    let make = || Ok(HeatMap::new(buckets, classes.bounds())?);
    let add = |map: &mut HeatMap, chunk: usize, rows: &Rows<'_>| {
        map.add(&times.chunks[chunk], &numbers.chunks[chunk], rows)?;
        Ok(())
    };
    let map = selected.pass(make, add, |all, more| all.merge(&more))?;
    let (mut above, mut below) = (0, 0);
    let counts = map.finish().into_iter().map(|counts| {
        let (counts, more_above, more_below) = Classes::split_counts(counts);
        above += more_above;
        below += more_below;
        counts
    });
    let counts = counts.collect();
    let width = buckets.bucket(0).span().max(1);
    let (start, time) = (span.start(), def.time);
    let class = classes.sql(query::number(column));
    let sql = format!(
        "SELECT\n  {start} + bucket({time} - {start}, {width}) AS from_ns,\n  {class} AS up_to,\n  \
         count(*) AS rows\nFROM {}{}\nGROUP BY 1, 2\nORDER BY 1, 2",
        def.table.name(),
        query::filter(&known(&selected, query::number(column)))
    );
    Ok(HeatAnswer {
        start_ns: span.start(),
        end_ns: span.end(),
        bucket_ns: i64::try_from(buckets.bucket(0).span()).unwrap_or(i64::MAX),
        buckets: buckets.len(),
        bounds: classes.into_bounds(),
        counts,
        above,
        below,
        unit: column.unit.to_owned(),
        sql,
    })
}

/// Returns the SQL conditions of the selected rows, and the condition that the number is not null.
pub(crate) fn known(selected: &SelectedRows<'_>, number: &str) -> Vec<String> {
    let known = format!("{number} IS NOT NULL");
    selected.sql.iter().cloned().chain([known]).collect()
}
