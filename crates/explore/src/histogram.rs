//! How values are spread, by group.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use views::{Histogram, NULL_ID, Rows};

use crate::classes::{Classes, MOST_CLASSES};
use crate::heat::known;
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::timeline::MOST_SERIES;
use crate::{Condition, ExploreError, Id, query};

/// Asks how values are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramRequest {
    /// The table.
    pub table: String,
    /// A column of numbers.
    pub value: String,
    /// The key that has a series each; without one there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Classes of values at most, 1 to 256; 60 if nothing is said.
    #[serde(default)]
    pub classes: Option<u32>,
    /// Series shown at most, up to 64: those of most values; 8 if nothing is said.
    #[serde(default)]
    pub first: Option<u32>,
    /// The least and the greatest value that have a class; those of the rows if nothing is said.
    #[serde(default)]
    pub values: Option<[i64; 2]>,
}

/// How values are spread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramAnswer {
    /// The bounds of classes, rising by equal factors: class `i` holds values above `bounds[i]` and
    /// up to `bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// The series of most values first.
    pub series: Vec<HistogramSeries>,
    /// How many groups have no series.
    pub rest: usize,
    /// The unit of the values.
    pub unit: String,
    /// The query that gives the same.
    pub sql: String,
}

/// The values of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramSeries {
    /// The group.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// By class.
    pub counts: Vec<u64>,
    /// Values above all classes.
    pub above: u64,
    /// Values below all classes: zeros as a rule.
    pub below: u64,
}

/// Classes and series where nothing is said.
const USUAL_CLASSES: u32 = 60;
const USUAL_SERIES: u32 = 8;

pub(crate) fn answer(
    ask: Ask<'_>,
    request: &HistogramRequest,
) -> Result<HistogramAnswer, ExploreError> {
    let most = request.classes.unwrap_or(USUAL_CLASSES);
    let first = request.first.unwrap_or(USUAL_SERIES);
    bounded("classes", most.into(), 1, MOST_CLASSES)?;
    bounded("first", first.into(), 1, MOST_SERIES)?;
    let def = crate::catalogue::table(&request.table)?;
    let column = def.number(&request.value)?;
    let key = request.by.as_deref().map(|by| def.key(by)).transpose()?;
    let range = range_of(request.range)?;
    let table = ask.open(&request.table)?;
    let selection = Selection::new(ask, &table, Within::Overlap, range, &request.filter)?;
    let numbers = ask.measures(&table, column)?;
    let keys = key.map(|key| ask.keys(&table, key)).transpose()?;
    let classes = Classes::of(&selection, &numbers, request.values, most)?;
    let zeros = vec![0; selection.longest_chunk()];
    let bound = keys.as_ref().map_or(1, |keys| keys.bound());
    let make = || Ok(Histogram::new(classes.bounds(), bound)?);
    let add = |histogram: &mut Histogram, chunk: usize, rows: &Rows<'_>| {
        let ids = keys.as_ref().map_or(&zeros, |keys| &keys.chunks[chunk]);
        histogram.add(ids, &numbers.chunks[chunk], rows)?;
        Ok(())
    };
    let histogram = selection.pass(make, add, |all, more| all.merge(&more))?;
    let names = keys.as_ref().map(|keys| &keys.names);
    let series = histogram.finish().into_iter().map(|(dense, counts)| {
        let dense = dense.unwrap_or(NULL_ID);
        let (counts, above, below) = Classes::split(counts);
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
    let class = classes.sql(&number);
    let sql = format!(
        "SELECT\n{label}  {class} AS up_to,\n  count(*) AS rows\nFROM {}{}\nGROUP BY \
         {groups}{class}\nORDER BY {}up_to",
        def.table.name(),
        query::filter(&known(&selection, &number)),
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
