//! How values are spread over time.

use serde::{Deserialize, Serialize};
use views::{HeatMap, Rows, TimeBuckets};

use crate::classes::{Classes, MOST_CLASSES};
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::timeline::MOST_BUCKETS;
use crate::{Condition, ExploreError, query};

/// Asks how values are spread over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatRequest {
    /// The table.
    pub table: String,
    /// A column of numbers.
    pub value: String,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Slices of time, 1 to 4000.
    pub buckets: u32,
    /// Classes of values at most, 1 to 256.
    pub rows: u32,
    /// The least and the greatest value that have a class; those of the rows if nothing is said.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// How values are spread over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatAnswer {
    /// Where the first slice begins.
    pub start_ns: i64,
    /// Where the last ends.
    pub end_ns: i64,
    /// How long a slice is.
    pub bucket_ns: i64,
    /// How many there are.
    pub buckets: usize,
    /// The bounds of classes, rising by equal factors: class `i` holds values above `bounds[i]` and
    /// up to `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// By slice, then by class.
    pub counts: Vec<Vec<u64>>,
    /// Values above all classes.
    pub above: u64,
    /// Values below all classes: zeros as a rule.
    pub below: u64,
    /// The unit of the values.
    pub unit: String,
    /// The query that gives the same.
    pub sql: String,
}

pub(crate) fn answer(ask: Ask<'_>, request: &HeatRequest) -> Result<HeatAnswer, ExploreError> {
    bounded("buckets", request.buckets.into(), 1, MOST_BUCKETS)?;
    bounded("rows", request.rows.into(), 1, MOST_CLASSES)?;
    let def = crate::catalogue::table(&request.table)?;
    let column = def.number(&request.value)?;
    range_of(request.range)?;
    let table = ask.open(&request.table)?;
    let span = ask.span(request.range, &table)?;
    let selection = Selection::new(ask, &table, Within::Moment, Some(span), &request.filter)?;
    let times = ask.columns.times(&table, ask.cancel)?;
    let numbers = ask.measures(&table, column)?;
    let classes = Classes::of(&selection, &numbers, request.values, request.rows)?;
    let buckets = TimeBuckets::new(span, request.buckets as usize);
    let make = || Ok(HeatMap::new(buckets, classes.bounds())?);
    let add = |map: &mut HeatMap, chunk: usize, rows: &Rows<'_>| {
        map.add(&times.chunks[chunk], &numbers.chunks[chunk], rows)?;
        Ok(())
    };
    let map = selection.pass(make, add, |all, more| all.merge(&more))?;
    let (mut above, mut below) = (0, 0);
    let counts = map.finish().into_iter().map(|counts| {
        let (counts, more_above, more_below) = Classes::split(counts);
        above += more_above;
        below += more_below;
        counts
    });
    let counts = counts.collect();
    let width = buckets.bucket(0).span().max(1);
    let (start, time) = (span.start(), def.time);
    let class = classes.sql(&query::number(column));
    let sql = format!(
        "SELECT\n  {start} + bucket({time} - {start}, {width}) AS from_ns,\n  {class} AS up_to,\n  \
         count(*) AS rows\nFROM {}{}\nGROUP BY 1, 2\nORDER BY 1, 2",
        def.table.name(),
        query::filter(&known(&selection, &query::number(column)))
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

/// The conditions of a selection, and that a number is known.
pub(crate) fn known(selection: &Selection<'_>, number: &str) -> Vec<String> {
    let known = format!("{number} IS NOT NULL");
    selection.sql.iter().cloned().chain([known]).collect()
}
