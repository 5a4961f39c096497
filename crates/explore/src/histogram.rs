//! Histograms, which show the distribution of values in each group.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{Histogram, NULL_ID, Rows};

use crate::classes::{Classes, MAX_CLASSES};
use crate::context::{Context, check_bounds, range_of};
use crate::heat::known;
use crate::query::{self, RangeRule};
use crate::selected_rows::SelectedRows;
use crate::timeline::MAX_SERIES;
use crate::{Condition, ExploreError, Id};

/// Request for a histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct HistogramRequest {
    /// Name of the table.
    pub table: String,
    /// Name of the column of numbers.
    pub value: String,
    /// Key with one series for each of its values; without a key, there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Maximum number of classes of values, 1 to 256; 60 if absent.
    #[serde(default)]
    pub classes: Option<u32>,
    /// Maximum number of series, 1 to 64; 8 if absent. The groups with the most values get a series.
    #[serde(default)]
    pub first: Option<u32>,
    /// Smallest and largest value that the classes cover; the smallest and largest value of the rows if
    /// absent.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// Histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HistogramAnswer {
    /// Bounds of the classes: class `i` contains values above `bounds[i]`, up to and including
    /// `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// Series, sorted by descending number of values.
    pub series: Vec<HistogramSeries>,
    /// Number of groups that have no series.
    pub rest: usize,
    /// Unit of the values.
    pub unit: String,
    /// SQL query that returns the same numbers.
    pub sql: String,
}

/// Distribution of the values of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HistogramSeries {
    /// Id of the group.
    pub id: Id,
    /// Label of the group.
    pub label: String,
    /// Number of values in each class.
    pub counts: Vec<u64>,
    /// Number of values that are larger than all classes.
    pub above: u64,
    /// Number of values that are smaller than all classes. They are usually zeros.
    pub below: u64,
}

/// Default number of classes.
const DEFAULT_CLASSES: u32 = 60;
/// Default number of series.
const DEFAULT_SERIES: u32 = 8;

pub(crate) fn answer(
    context: Context<'_>,
    request: &HistogramRequest,
) -> Result<HistogramAnswer, ExploreError> {
    let most = request.classes.unwrap_or(DEFAULT_CLASSES);
    let first = request.first.unwrap_or(DEFAULT_SERIES);
    check_bounds("classes", most.into(), 1, MAX_CLASSES)?;
    check_bounds("first", first.into(), 1, MAX_SERIES)?;
    let def = crate::catalogue::table(&request.table)?;
    let column = def.number(&request.value)?;
    let key = request.by.as_deref().map(|by| def.key(by)).transpose()?;
    let range = range_of(request.range)?;
    let table = context.open(&request.table)?;
    let selected = SelectedRows::new(&table, RangeRule::Overlap, range, &request.filter)?;
    let numbers = table.measures(column)?;
    let keys = key.map(|key| table.keys(key)).transpose()?;
    let classes = Classes::for_rows(&selected, &numbers, request.values, most)?;
    let zeros = vec![0; selected.longest_chunk()];
    let bound = keys.as_ref().map_or(1, |keys| keys.bound());
    let make = || Ok(Histogram::new(classes.bounds(), bound)?);
    let add = |histogram: &mut Histogram, chunk: usize, rows: &Rows<'_>| {
        let ids = keys.as_ref().map_or(&zeros, |keys| &keys.chunks[chunk]);
        histogram.add(ids, &numbers.chunks[chunk], rows)?;
        Ok(())
    };
    let histogram = selected.pass(make, add, |all, more| all.merge(&more))?;
    let names = keys.as_ref().map(|keys| &keys.names);
    let series = histogram.finish().into_iter().map(|(dense, counts)| {
        let dense = dense.unwrap_or(NULL_ID);
        let (counts, above, below) = Classes::split_counts(counts);
        HistogramSeries {
            id: names.and_then(|names| names.id(dense)),
            label: names.map_or_else(|| "all".to_owned(), |names| names.label(dense).into_owned()),
            counts,
            above,
            below,
        }
    });
    let mut series: Vec<HistogramSeries> = series.collect();
    series.sort_by_key(|series| {
        Reverse(series.counts.iter().sum::<u64>() + series.above + series.below)
    });
    let rest = series.len().saturating_sub(first as usize);
    series.truncate(first as usize);
    let number = query::number(column);
    let label = key
        .map(|key| format!("  {},\n", key.named()))
        .unwrap_or_default();
    let groups = key.map(|key| key.group_by()).unwrap_or_default();
    let groups: String = groups.iter().map(|group| format!("{group}, ")).collect();
    let class = classes.sql(number);
    let sql = format!(
        "SELECT\n{label}  {class} AS up_to,\n  count(*) AS rows\nFROM {}{}\nGROUP BY \
         {groups}{class}\nORDER BY {}up_to",
        def.table.name(),
        query::filter(&known(&selected, number)),
        key.map(|key| format!("{}, ", key.alias()))
            .unwrap_or_default(),
    );
    Ok(HistogramAnswer {
        bounds: classes.into_bounds(),
        series,
        rest,
        unit: column.unit.to_owned(),
        sql,
    })
}
