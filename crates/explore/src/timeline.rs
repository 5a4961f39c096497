//! Timelines, which contain values for each time bucket and group.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{Intervals, Lane, Lanes, NULL_ID, Rows, Series, Summary, TimeBuckets, Timeline};

use crate::catalogue::{ColumnDef, ROWS, TIME};
use crate::context::{Context, check_bounds, range_of};
use crate::decoded_columns::{Keys, Measures, RowIntervals};
use crate::durations::Durations;
use crate::names::Names;
use crate::query::{self, RangeRule};
use crate::selected_rows::SelectedRows;
use crate::{Condition, ExploreError, Id, Number};

/// Request for a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct TimelineRequest {
    /// Name of the table.
    pub table: String,
    /// Key with one series for each of its values; without a key, there is one series.
    #[serde(default)]
    pub by: Option<String>,
    /// Name of a column of numbers. `rows` (the default) is the number of rows, and `time` the nanoseconds
    /// that rows last. Times that rows last and sums of durations are divided among the time buckets that
    /// they cover. Each other number is counted in the bucket with its row's time, by which the table is sorted.
    #[serde(default)]
    pub measure: Option<String>,
    /// Function that combines the numbers in a time bucket; the sum if absent.
    #[serde(default)]
    pub function: Option<Function>,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Number of time buckets, 1 to 4000.
    pub buckets: u32,
    /// Maximum number of groups with their own series, up to 64. The groups with the largest totals get their
    /// own series.
    pub first: u32,
}

/// Function that combines the numbers in a time bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "TimelineFunction")]
pub enum Function {
    /// Sum of the numbers.
    #[default]
    Sum,
    /// Largest number.
    Max,
    /// Smallest number.
    Min,
    /// Arithmetic mean.
    Mean,
    /// Number of known numbers.
    Count,
}

/// Timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TimelineAnswer {
    /// Start of the first bucket, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End of the last bucket, in nanoseconds since the trace's start. The last bucket may be shorter than
    /// the others.
    pub end_ns: i64,
    /// Length of a bucket, in nanoseconds.
    pub bucket_ns: i64,
    /// Number of buckets.
    pub buckets: usize,
    /// Series, sorted by descending total. The series of unknown values is last.
    pub series: Vec<TimelineSeries>,
    /// Combined values of the groups without their own series.
    pub rest: Option<RestSeries>,
    /// Unit of the values.
    pub unit: String,
    /// True if the values are times that are divided among the buckets that they cover. A value that equals
    /// the length of the bucket then means that one row lasted during the whole bucket.
    pub spread: bool,
    /// SQL query that returns the same numbers.
    pub sql: String,
}

/// Series of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TimelineSeries {
    /// Id of the group.
    pub id: Id,
    /// Label of the group.
    pub label: String,
    /// Value for the whole time range.
    #[ts(as = "Option<f64>")]
    pub total: Option<Number>,
    /// Value in each bucket. In a bucket without numbers, sums and counts are 0 and other values are `null`.
    #[ts(as = "Vec<Option<f64>>")]
    pub values: Vec<Option<Number>>,
}

/// Combined values of all groups without their own series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct RestSeries {
    /// Number of these groups.
    pub count: usize,
    /// Value of these groups for the whole time range.
    #[ts(as = "Option<f64>")]
    pub total: Option<Number>,
    /// Value of these groups in each bucket.
    #[ts(as = "Vec<Option<f64>>")]
    pub values: Vec<Option<Number>>,
}

/// Maximum number of time buckets.
pub(crate) const MAX_BUCKETS: u64 = 4000;
/// Maximum number of series.
pub(crate) const MAX_SERIES: u64 = 64;

impl Function {
    /// Returns the value of a summary. Sums and counts of an empty summary are 0.
    fn value(self, summary: &Summary) -> Option<Number> {
        let count = || i64::try_from(summary.count()).unwrap_or(i64::MAX);
        match self {
            Function::Sum => Some(Number::Integer(summary.sum().unwrap_or(0))),
            Function::Max => summary.max().map(Number::Integer),
            Function::Min => summary.min().map(Number::Integer),
            Function::Mean => summary.mean().map(Number::Real),
            Function::Count => Some(Number::Integer(count())),
        }
    }

    /// Returns an SQL expression that applies the function.
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

/// Numbers from which the values of a timeline are computed.
enum Measure {
    /// Number of rows.
    Rows,
    /// The numbers of a column.
    Column(&'static ColumnDef, Arc<Measures>),
    /// Times between starts and ends. The texts are the starts and ends as SQL.
    Time(RowIntervals, (String, String)),
}

impl Measure {
    /// Returns the unit of what a function makes of the numbers.
    fn unit(&self, function: Function) -> &'static str {
        match self {
            Measure::Rows => "",
            Measure::Time(..) => "ns",
            Measure::Column(..) if function == Function::Count => "",
            Measure::Column(column, _) => column.unit,
        }
    }
}

/// Data that is needed for a pass over the rows.
struct Pass<'p, 'a> {
    selected: &'p SelectedRows<'a>,
    times: Arc<Measures>,
    keys: Option<&'p Keys>,
    measure: &'p Measure,
    /// The value 0 for each row of the longest chunk: keys if the rows are not grouped.
    zeros: Vec<u32>,
    /// The value 1 for each row of the longest chunk: weights if rows are counted.
    ones: Vec<i64>,
}

pub(crate) fn answer(
    context: Context<'_>,
    request: &TimelineRequest,
) -> Result<TimelineAnswer, ExploreError> {
    check_bounds("buckets", request.buckets.into(), 1, MAX_BUCKETS)?;
    check_bounds("first", request.first.into(), 0, MAX_SERIES)?;
    let def = crate::catalogue::table(&request.table)?;
    let key = request.by.as_deref().map(|by| def.key(by)).transpose()?;
    range_of(request.range)?;
    let name = request.measure.as_deref().unwrap_or(ROWS);
    let number = match name {
        ROWS | TIME => None,
        column => Some(def.number(column)?),
    };
    if name == TIME && def.lasts.is_none() {
        return Err(ExploreError::OutOfBounds {
            field: "measure",
            needed: format!(
                "cannot be `time`: rows of `{}` have no duration",
                request.table
            ),
        });
    }
    let table = context.open(&request.table)?;
    let span = table.span(request.range)?;
    let is_sum = request.function.unwrap_or_default() == Function::Sum;
    let durations = number
        .filter(|_| is_sum)
        .and_then(|column| Durations::find(def, column));
    let within = match (name, durations) {
        (TIME, _) => RangeRule::Overlap,
        (_, Some(durations)) => RangeRule::Duration(durations),
        _ => RangeRule::Moment,
    };
    let selected = SelectedRows::new(&table, within, Some(span), &request.filter)?;
    let keys = key.map(|key| table.keys(key)).transpose()?;
    let measure = match (number, durations) {
        (_, Some(durations)) => Measure::Time(table.durations(durations)?, durations.sql()),
        (Some(column), None) => Measure::Column(column, table.measures(column)?),
        (None, None) if name == TIME => match table.intervals()? {
            Some(rows) => Measure::Time(rows, query::interval(def)),
            None => Measure::Rows,
        },
        (None, None) => Measure::Rows,
    };
    let function = match measure {
        Measure::Column(..) => request.function.unwrap_or_default(),
        Measure::Rows | Measure::Time(..) => Function::Sum,
    };
    let longest = selected.longest_chunk();
    let pass = Pass {
        times: table.times()?,
        selected: &selected,
        keys: keys.as_deref(),
        measure: &measure,
        zeros: vec![0; longest],
        ones: vec![1; longest],
    };
    let buckets = TimeBuckets::new(span, request.buckets as usize);
    let (series, others) = pass.series(buckets, function, request.first as usize)?;
    let mut answer = TimelineAnswer {
        start_ns: span.start(),
        end_ns: span.end(),
        bucket_ns: i64::try_from(buckets.bucket(0).span()).unwrap_or(i64::MAX),
        buckets: buckets.len(),
        series: Vec::new(),
        rest: None,
        unit: measure.unit(function).to_owned(),
        spread: matches!(measure, Measure::Time(..)),
        sql: sql(&selected, key, &measure, function, buckets),
    };
    let names = keys.as_ref().map(|keys| &keys.names);
    answer.add_series(&series, others, function, names);
    Ok(answer)
}

impl TimelineAnswer {
    /// Adds the series, sorted. `others` is the number of groups in the series [`Lane::Other`]. `names` has the ids and
    /// labels of the groups; it is `None` if the rows are not grouped.
    fn add_series(
        &mut self,
        series: &[Series],
        others: usize,
        function: Function,
        names: Option<&Names>,
    ) {
        for line in series {
            let values = line.buckets.iter().map(|bucket| function.value(bucket));
            let values: Vec<Option<Number>> = values.collect();
            let total = function.value(&line.total);
            let dense = match line.lane {
                Lane::Other => {
                    self.rest = Some(RestSeries {
                        count: others,
                        total,
                        values,
                    });
                    continue;
                }
                Lane::Id(dense) => dense,
                Lane::Unknown => NULL_ID,
            };
            self.series.push(TimelineSeries {
                id: names.and_then(|names| names.id(dense)),
                label: names
                    .map_or_else(|| "all".to_owned(), |names| names.label(dense).into_owned()),
                total,
                values,
            });
        }
        let unknown = |series: &TimelineSeries| names.is_some() && series.id.is_none();
        self.series.sort_by(|a, b| {
            let by_total = b.total.partial_cmp(&a.total);
            unknown(a)
                .cmp(&unknown(b))
                .then(by_total.unwrap_or(Ordering::Equal))
        });
    }
}

/// Maximum number of buckets × groups for a single pass that computes all groups, even if few of them are
/// shown. Above this number, a first pass computes the totals, and a second pass computes the shown groups.
const MAX_CELLS_OF_ONE_PASS: usize = 1 << 17;

impl Pass<'_, '_> {
    /// Returns the series of the groups with the largest totals, of all other groups together, and of
    /// unknown values. Also returns the number of the other groups.
    fn series(
        &self,
        buckets: TimeBuckets,
        function: Function,
        first: usize,
    ) -> Result<(Vec<Series>, usize), ExploreError> {
        let Some(keys) = self.keys else {
            let all = self.run(buckets, &Lanes::every(1))?;
            return Ok((all.finish(), 0));
        };
        let every = Lanes::every(keys.bound());
        if buckets.len() * (keys.bound() as usize + 1) <= MAX_CELLS_OF_ONE_PASS {
            let all = self.run(buckets, &every)?.finish();
            let shown = self.by_total(&all, function);
            return Ok(merge_rest(
                all,
                &shown[..first.min(shown.len())],
                shown.len(),
            ));
        }
        let totals = self.run(TimeBuckets::new(buckets.range(), 1), &every)?;
        let shown = self.by_total(&totals.finish(), function);
        let others = shown.len().saturating_sub(first);
        let lanes = Lanes::from_ids(&shown[..first.min(shown.len())], keys.bound());
        Ok((self.run(buckets, &lanes)?.finish(), others))
    }

    /// Returns the groups sorted by descending total, without the group of unknown values.
    fn by_total(&self, series: &[Series], function: Function) -> Vec<u32> {
        let rank = |dense: &u32| self.keys.map_or(0, |keys| keys.names.rank(*dense));
        let mut totals: Vec<(u32, Option<Number>)> = series
            .iter()
            .filter_map(|series| match series.lane {
                Lane::Id(dense) => Some((dense, function.value(&series.total))),
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
            match self.measure {
                Measure::Rows => timeline.add_values(times, keys, &self.ones, rows)?,
                Measure::Column(_, numbers) => {
                    timeline.add_values(times, keys, &numbers.chunks[chunk], rows)?;
                }
                Measure::Time(intervals, _) => timeline.add_intervals(
                    Intervals {
                        starts: &intervals.starts.chunks[chunk],
                        ends: &intervals.ends.chunks[chunk],
                        keys,
                    },
                    rows,
                )?,
            }
            Ok(())
        };
        self.selected.pass(make, add, |all, more| all.merge(&more))
    }
}

/// Merges the series of all groups that are not in `shown` to one series. Returns all series and the number
/// of merged groups.
fn merge_rest(all: Vec<Series>, shown: &[u32], groups: usize) -> (Vec<Series>, usize) {
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
    selected: &SelectedRows<'_>,
    key: Option<&ColumnDef>,
    measure: &Measure,
    function: Function,
    buckets: TimeBuckets,
) -> String {
    let def = selected.table.def;
    let name = def.table.name();
    let (start, end) = (buckets.range().start(), buckets.range().end());
    let width = buckets.bucket(0).span().max(1);
    let label = key
        .map(|key| format!("  {},\n", key.named()))
        .unwrap_or_default();
    let groups: Vec<String> = key.map(ColumnDef::group_by).unwrap_or_default();
    let grouped: String = groups.iter().map(|group| format!(", {group}")).collect();
    let order = key.map_or_else(String::new, |key| format!(", {}", key.alias()));
    let conditions = query::filter(&selected.sql);
    match measure {
        Measure::Time(_, (from, to)) => {
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
                query::filter(&selected.sql).replace('\n', "\n  "),
            )
        }
        Measure::Rows | Measure::Column(..) => {
            let what = match measure {
                Measure::Column(column, _) => function.sql(query::number(column)),
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
