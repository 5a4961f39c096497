//! How much, per slice of time and group.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use views::{Intervals, Lane, Lanes, NULL_ID, Rows, Series, Summary, TimeBuckets, Timeline};

use crate::catalogue::ColumnDef;
use crate::columns::{Ends, Keys, Measures, Opened};
use crate::in_view::TIME;
use crate::query;
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::stretches::Stretches;
use crate::{Condition, ExploreError, Id, Number};

/// Asks how much there was over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineRequest {
    /// The table.
    pub table: String,
    /// The key that has a series each; without one there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// A column of numbers; `rows` (or nothing) for the number of rows; `time` for the nanoseconds
    /// that rows last. These, and sums of a column that are such time, are spread over the slices that
    /// they cover; any other number is where its row ended.
    #[serde(default)]
    pub measure: Option<String>,
    /// What is computed of a column's numbers: their sum if nothing is said.
    #[serde(default)]
    pub function: Option<Function>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Slices of time, 1 to 4000.
    pub buckets: u32,
    /// Series shown one by one, at most 64: those of the greatest totals.
    pub first: u32,
}

/// What is computed of the numbers of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Their sum.
    #[default]
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Their mean.
    Mean,
    /// How many are known.
    Count,
}

/// How much there was over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineAnswer {
    /// Where the first slice begins.
    pub start_ns: i64,
    /// Where the last ends; it may be shorter than the others.
    pub end_ns: i64,
    /// How long a slice is.
    pub bucket_ns: i64,
    /// How many there are.
    pub buckets: usize,
    /// The series of the greatest totals first; that of the unknown, if there is one, last.
    pub series: Vec<TimelineSeries>,
    /// All others together.
    pub rest: Option<RestSeries>,
    /// The unit of the values.
    pub unit: String,
    /// The values are stretches of time, spread over the slices that they cover: a slice as long as
    /// what it holds had one of them all the time.
    pub spread: bool,
    /// The query that gives the same.
    pub sql: String,
}

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineSeries {
    /// Its group.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// The function of the whole range.
    pub total: Option<Number>,
    /// By slice: 0 where nothing is summed or counted, `null` where nothing is known otherwise.
    pub values: Vec<Option<Number>>,
}

/// The groups without a line of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestSeries {
    /// How many there are.
    pub count: usize,
    /// The function over all of them, of the whole range.
    pub total: Option<Number>,
    /// The same by slice.
    pub values: Vec<Option<Number>>,
}

/// The most slices of time.
pub(crate) const MOST_BUCKETS: u64 = 4000;
/// The most series.
pub(crate) const MOST_SERIES: u64 = 64;
/// What the number of rows is called.
pub(crate) const ROWS: &str = "rows";

impl Function {
    /// Its value of a summary; of nothing 0 where things are summed or counted.
    fn of(self, summary: &Summary) -> Option<Number> {
        let count = || i64::try_from(summary.count()).unwrap_or(i64::MAX);
        match self {
            Function::Sum => Some(Number::Integer(summary.sum().unwrap_or(0))),
            Function::Max => summary.max().map(Number::Integer),
            Function::Min => summary.min().map(Number::Integer),
            Function::Mean => summary.mean().map(Number::Real),
            Function::Count => Some(Number::Integer(count())),
        }
    }

    /// As SQL.
    fn sql(self, of: &str) -> String {
        match self {
            Function::Sum => format!("sum({of})"),
            Function::Max => format!("max({of})"),
            Function::Min => format!("min({of})"),
            Function::Mean => format!("avg({of})"),
            Function::Count => format!("count({of})"),
        }
    }
}

/// What is summed up.
enum Measured {
    /// The number of rows.
    Rows,
    /// A column's numbers.
    Column(&'static ColumnDef, Arc<Measures>),
    /// Stretches of time, and when they begin and end as SQL.
    Time(Ends, (String, String)),
}

/// Everything that a pass over the rows needs.
struct Pass<'p, 'a> {
    selection: &'p Selection<'a>,
    times: Arc<Measures>,
    keys: Option<&'p Keys>,
    measured: &'p Measured,
    /// As long as the longest chunk.
    zeros: Vec<u32>,
    ones: Vec<i64>,
}

pub(crate) fn answer(
    ask: Ask<'_>,
    request: &TimelineRequest,
) -> Result<TimelineAnswer, ExploreError> {
    bounded("buckets", request.buckets.into(), 1, MOST_BUCKETS)?;
    bounded("first", request.first.into(), 0, MOST_SERIES)?;
    let def = crate::catalogue::table(&request.table)?;
    let key = request.by.as_deref().map(|by| def.key(by)).transpose()?;
    range_of(request.range)?;
    let measure = request.measure.as_deref().unwrap_or(ROWS);
    let number = match measure {
        ROWS | TIME => None,
        column => Some(def.number(column)?),
    };
    if measure == TIME && def.lasts.is_none() {
        return Err(ExploreError::OutOfBounds {
            field: "measure",
            needed: format!("cannot be `time`: rows of `{}` are moments", request.table),
        });
    }
    let table = ask.open(&request.table)?;
    let span = ask.span(request.range, &table)?;
    let sums = request.function.unwrap_or_default() == Function::Sum;
    let stretches = number
        .filter(|_| sums)
        .and_then(|column| Stretches::of(def, column));
    let within = match (measure, stretches) {
        (TIME, _) => Within::Overlap,
        (_, Some(stretches)) => Within::Stretch(stretches),
        _ => Within::Moment,
    };
    let selection = Selection::new(ask, &table, within, Some(span), &request.filter)?;
    let keys = key.map(|key| ask.keys(&table, key)).transpose()?;
    let measured = match (number, stretches) {
        (_, Some(stretches)) => {
            let ends = ask.columns.stretches(&table, stretches, ask.cancel)?;
            Measured::Time(ends, stretches.sql())
        }
        (Some(column), None) => Measured::Column(column, ask.measures(&table, column)?),
        (None, None) if measure == TIME => match ask.columns.intervals(&table, ask.cancel)? {
            Some(ends) => Measured::Time(ends, query::interval(def)),
            None => Measured::Rows,
        },
        (None, None) => Measured::Rows,
    };
    let function = match measured {
        Measured::Column(..) => request.function.unwrap_or_default(),
        Measured::Rows | Measured::Time(..) => Function::Sum,
    };
    let longest = selection.longest_chunk();
    let pass = Pass {
        times: ask.columns.times(&table, ask.cancel)?,
        selection: &selection,
        keys: keys.as_deref(),
        measured: &measured,
        zeros: vec![0; longest],
        ones: vec![1; longest],
    };
    let buckets = TimeBuckets::new(span, request.buckets as usize);
    let (series, others) = pass.series(buckets, function, request.first as usize)?;
    let unit = match &measured {
        Measured::Rows => "",
        Measured::Time(..) => "ns",
        Measured::Column(..) if function == Function::Count => "",
        Measured::Column(column, _) => column.unit,
    };
    let mut answer = TimelineAnswer {
        start_ns: span.start(),
        end_ns: span.end(),
        bucket_ns: i64::try_from(buckets.bucket(0).span()).unwrap_or(i64::MAX),
        buckets: buckets.len(),
        series: Vec::new(),
        rest: None,
        unit: unit.to_owned(),
        spread: matches!(measured, Measured::Time(..)),
        sql: sql(&table, &selection, key, &measured, function, buckets),
    };
    for line in &series {
        let values = line.buckets.iter().map(|bucket| function.of(bucket));
        let values: Vec<Option<Number>> = values.collect();
        let total = function.of(&line.total);
        let dense = match line.lane {
            Lane::Other => {
                answer.rest = Some(RestSeries {
                    count: others,
                    total,
                    values,
                });
                continue;
            }
            Lane::Id(dense) => dense,
            Lane::Unknown => NULL_ID,
        };
        let names = keys.as_ref().map(|keys| &keys.names);
        answer.series.push(TimelineSeries {
            id: names.and_then(|names| names.id(dense)),
            label: names.map_or_else(|| "all".to_owned(), |names| names.label(dense).into_owned()),
            total,
            values,
        });
    }
    let unknown = |series: &TimelineSeries| key.is_some() && series.id.is_none();
    answer.series.sort_by(|a, b| {
        let by_total = b.total.partial_cmp(&a.total);
        unknown(a)
            .cmp(&unknown(b))
            .then(by_total.unwrap_or(Ordering::Equal))
    });
    Ok(answer)
}

/// Buckets and groups that are few enough to sum up all groups at once, though few are shown.
const FEW_CELLS: usize = 1 << 17;

impl Pass<'_, '_> {
    /// The lines of the groups of the greatest totals, of all others and of the unknown; and how
    /// many others there are.
    fn series(
        &self,
        buckets: TimeBuckets,
        function: Function,
        first: usize,
    ) -> Result<(Vec<Series>, usize), ExploreError> {
        let Some(keys) = self.keys else {
            let all = self.run(buckets, &Lanes::every(1))?;
            return Ok((all.finish(1), 0));
        };
        let every = Lanes::every(keys.bound());
        if buckets.len() * (keys.bound() as usize + 1) <= FEW_CELLS {
            let all = self.run(buckets, &every)?.finish(usize::MAX);
            let shown = self.greatest(&all, function);
            return Ok(rest_together(
                all,
                &shown[..first.min(shown.len())],
                shown.len(),
            ));
        }
        let totals = self.run(TimeBuckets::new(buckets.range(), 1), &every)?;
        let shown = self.greatest(&totals.finish(usize::MAX), function);
        let others = shown.len().saturating_sub(first);
        let lanes = Lanes::of(&shown[..first.min(shown.len())], keys.bound());
        Ok((self.run(buckets, &lanes)?.finish(usize::MAX), others))
    }

    /// The known groups, those of the greatest totals first.
    fn greatest(&self, series: &[Series], function: Function) -> Vec<u32> {
        let rank = |dense: &u32| self.keys.map_or(0, |keys| keys.names.rank(*dense));
        let mut totals: Vec<(u32, Option<Number>)> = series
            .iter()
            .filter_map(|series| match series.lane {
                Lane::Id(dense) => Some((dense, function.of(&series.total))),
                Lane::Other | Lane::Unknown => None,
            })
            .collect();
        totals.sort_by(|(a, of_a), (b, of_b)| {
            let order = of_b.partial_cmp(of_a).unwrap_or(Ordering::Equal);
            order.then_with(|| rank(a).cmp(&rank(b)))
        });
        totals.into_iter().map(|(dense, _)| dense).collect()
    }

    fn run(&self, buckets: TimeBuckets, lanes: &Lanes) -> Result<Timeline, ExploreError> {
        let make = || Ok(Timeline::new(buckets, lanes.clone())?);
        let add = |timeline: &mut Timeline, chunk: usize, rows: &Rows<'_>| {
            let keys = match self.keys {
                Some(keys) => &keys.chunks[chunk],
                None => &self.zeros,
            };
            let times = &self.times.chunks[chunk];
            match self.measured {
                Measured::Rows => timeline.add_values(times, keys, &self.ones, rows)?,
                Measured::Column(_, numbers) => {
                    timeline.add_values(times, keys, &numbers.chunks[chunk], rows)?;
                }
                Measured::Time((starts, ends), _) => timeline.add_intervals(
                    Intervals {
                        starts: &starts.chunks[chunk],
                        ends: &ends.chunks[chunk],
                        keys,
                    },
                    rows,
                )?,
            }
            Ok(())
        };
        self.selection.pass(make, add, |all, more| all.merge(&more))
    }
}

/// The lines of these groups and of the unknown, and all others as one; and how many others there
/// are.
fn rest_together(all: Vec<Series>, shown: &[u32], groups: usize) -> (Vec<Series>, usize) {
    let is_other = |series: &Series| match series.lane {
        Lane::Id(dense) => !shown.contains(&dense),
        Lane::Other | Lane::Unknown => false,
    };
    let (others, mut lines): (Vec<Series>, Vec<Series>) = all.into_iter().partition(is_other);
    let together = others.into_iter().reduce(|mut sum, series| {
        sum.total.merge(&series.total);
        for (bucket, more) in sum.buckets.iter_mut().zip(&series.buckets) {
            bucket.merge(more);
        }
        sum
    });
    lines.extend(together.map(|series| Series {
        lane: Lane::Other,
        ..series
    }));
    (lines, groups - shown.len())
}

fn sql(
    table: &Opened,
    selection: &Selection<'_>,
    key: Option<&ColumnDef>,
    measured: &Measured,
    function: Function,
    buckets: TimeBuckets,
) -> String {
    let (name, def) = (table.def.table.name(), table.def);
    let (start, end) = (buckets.range().start(), buckets.range().end());
    let width = buckets.bucket(0).span().max(1);
    let label = key
        .map(|key| format!("  {},\n", key.named()))
        .unwrap_or_default();
    let groups: Vec<String> = key.map(ColumnDef::group_by).unwrap_or_default();
    let grouped: String = groups.iter().map(|group| format!(", {group}")).collect();
    let order = key.map_or_else(String::new, |key| format!(", {}", key.alias()));
    let conditions = query::filter(&selection.sql);
    match measured {
        Measured::Time(_, (from, to)) => {
            let inner: Vec<String> = groups
                .iter()
                .enumerate()
                .map(|(place, group)| format!("    {group} AS group_{place},\n"))
                .collect();
            let names: Vec<String> = (0..groups.len())
                .map(|place| format!("group_{place}"))
                .collect();
            let label = match (key, names.first()) {
                (Some(key), Some(label)) => format!("  {label} AS {},\n", key.alias()),
                _ => String::new(),
            };
            let grouped: String = names.iter().map(|name| format!(", {name}")).collect();
            format!(
                "SELECT\n  {start} + slice * {width} AS from_ns,\n{label}  sum(least(to_ns, {start} \
                 + (slice + 1) * {width}) - greatest(begin_ns, {start} + slice * {width})) AS \
                 time_ns\nFROM (\n  SELECT\n{}    greatest({from}, {start}) AS begin_ns,\n    \
                 least({to}, {end}) AS to_ns,\n    unnest(range((greatest({from}, {start}) - \
                 {start}) / {width}, (least({to}, {end}) - 1 - {start}) / {width} + 1)) AS slice\n  \
                 FROM {name}{}\n) slices\nGROUP BY slice{grouped}\nORDER BY from_ns{order}",
                inner.concat(),
                query::filter(&selection.sql).replace('\n', "\n  "),
            )
        }
        Measured::Rows | Measured::Column(..) => {
            let what = match measured {
                Measured::Column(column, _) => function.sql(&query::number(column)),
                _ => "count(*)".to_owned(),
            };
            format!(
                "SELECT\n  {start} + bucket({0} - {start}, {width}) AS from_ns,\n{label}  {what} AS \
                 value\nFROM {name}{conditions}\nGROUP BY bucket({0} - {start}, \
                 {width}){grouped}\nORDER BY from_ns{order}",
                def.time
            )
        }
    }
}
