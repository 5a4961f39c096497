//! Pivot tables: the groups of one level, with their aggregates, sorted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{Group, NULL_ID, Percentiles, Pivot, PivotSpec, Rows, TimeRange};

use crate::aggregates::{Aggregates, RequestedAggregate};
use crate::catalogue::{ColumnDef, ROWS, Source};
use crate::common_value::CommonValue;
use crate::context::{Context, OpenTable, check_bounds, range_of};
use crate::decoded_columns::{Keys, Measures};
use crate::durations::Durations;
use crate::in_view::TimeInView;
use crate::names::Names;
use crate::query::{self, RangeRule};
use crate::selected_rows::SelectedRows;
use crate::{Condition, ExploreError, Id, Number, Value};

/// Request for the groups in one level of a view's tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct PivotRequest {
    /// Name of the table.
    pub table: String,
    /// Keys left of the golden bar, outermost first. Without keys, the answer contains only totals.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub keys: Vec<String>,
    /// Ids of the expanded groups, outermost first. The answer contains the groups of the next key.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub path: Vec<Id>,
    /// Aggregates of each group: `rows`, or `COLUMN:` followed by `sum`, `count`, `mean`, `min`, `max`,
    /// `p50`, `p90`, `p95`, `p99` or `p999`. An aggregate can also be the name of a key. Its cell contains
    /// the value of this key, if all rows of the group have the same value.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub aggregates: Vec<String>,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Order of the groups; if absent, by descending number of rows.
    #[serde(default)]
    pub sort: Option<GroupSort>,
    /// Number of groups to skip.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub offset: u64,
    /// Maximum number of returned groups, up to 1000.
    pub first: u32,
    /// Text that the label of each group must contain. Case is ignored.
    #[serde(default)]
    pub search: Option<String>,
}

/// Order of groups. Groups with equal values are ordered by id. Groups with an unknown value are last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct GroupSort {
    /// Value by which groups are ordered: `key` for their labels, `rows`, or one of the aggregates.
    pub by: String,
    /// True if the largest value is first.
    pub descending: bool,
}

/// Groups of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct PivotAnswer {
    /// Number of rows in all groups, including the groups that do not match `search`.
    pub rows: u64,
    /// Number of groups that match `search`.
    pub groups_total: usize,
    /// Aggregates of all rows that `rows` counts.
    pub totals: Vec<Value>,
    /// Groups that were requested with `offset` and `first`.
    pub groups: Vec<PivotGroup>,
    /// True if percentiles are exact. If false, percentiles of groups with more than some thousand rows have
    /// an error of up to 1 %.
    pub exact: bool,
    /// SQL query that returns the same numbers.
    pub sql: String,
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct PivotGroup {
    /// Id of the group.
    pub id: Id,
    /// Label of the group.
    pub label: String,
    /// Number of rows.
    pub rows: u64,
    /// Values of the aggregates, in the order of the request.
    pub values: Vec<Value>,
    /// True if the group belongs to the last key, so it cannot be expanded.
    pub leaf: bool,
}

/// Maximum number of groups in an answer.
const MAX_GROUPS: u64 = 1000;
/// Maximum number of keys, and also of aggregates.
const MAX_COLUMNS: u64 = 64;
/// Value of the field `by` that orders groups by their labels.
const KEY: &str = "key";

pub(crate) fn answer(
    context: Context<'_>,
    request: &PivotRequest,
    cut: bool,
) -> Result<PivotAnswer, ExploreError> {
    let query = Query::new(context, request, cut && request.range.is_some())?;
    let groups = query.read()?;
    Ok(query.answer(groups))
}

/// A checked request, and all data that is needed to read its rows.
struct Query<'a, 'r> {
    request: &'r PivotRequest,
    rows: SelectedRows<'a>,
    span: TimeRange,
    /// True if durations are cut to the time range, and rows are selected if one of their durations overlaps it.
    cut: bool,
    aggregates: Aggregates,
    sort: Sorting,
    /// Keys of the request, up to and including the key whose groups are requested.
    keys: Vec<&'static ColumnDef>,
    key_columns: Vec<Arc<Keys>>,
    /// Decoded keys whose common values are requested.
    common_columns: Vec<Arc<Keys>>,
    measures: Vec<Numbers>,
    /// Number of ids of each key in `keys`. If the request has no keys, it contains a single 0.
    bounds: Vec<u32>,
    /// Dense ids of the expanded groups. `None` if one of the groups does not exist; the answer then
    /// contains no rows.
    path: Option<Vec<Option<u32>>>,
}

/// Aggregates of all groups, computed from the rows.
struct Groups {
    groups: Pivot,
    /// Aggregates of all rows together. Present if percentiles are requested: the percentiles of all rows
    /// cannot be computed from the percentiles of the groups.
    all: Option<Pivot>,
    /// Common values of each requested key, by group. The entry after the last group is for all rows
    /// together.
    common: Vec<CommonValue>,
}

impl<'a, 'r> Query<'a, 'r> {
    fn new(
        context: Context<'a>,
        request: &'r PivotRequest,
        cut: bool,
    ) -> Result<Query<'a, 'r>, ExploreError> {
        let def = crate::catalogue::table(&request.table)?;
        let (keys, aggregates) = (request.keys.len(), request.aggregates.len());
        check_bounds("first", request.first.into(), 0, MAX_GROUPS)?;
        check_bounds("keys", keys as u64, 0, MAX_COLUMNS)?;
        check_bounds("aggregates", aggregates as u64, 0, MAX_COLUMNS)?;
        let deepest = (keys as u64).saturating_sub(1);
        check_bounds("path", request.path.len() as u64, 0, deepest)?;
        let keys: Result<Vec<&'static ColumnDef>, ExploreError> =
            request.keys.iter().map(|key| def.key(key)).collect();
        let mut keys = keys?;
        keys.truncate(request.path.len() + 1);
        let aggregates = Aggregates::parse(def, &request.aggregates)?;
        let sort = Sorting::parse(request)?;
        let range = range_of(request.range)?;
        let table = context.open(&request.table)?;
        let within = if cut {
            RangeRule::Reach
        } else {
            RangeRule::Overlap
        };
        let rows = SelectedRows::new(&table, within, range, &request.filter)?;
        let span = table.span(request.range)?;
        let decoded = |columns: &[&'static ColumnDef]| -> Result<Vec<Arc<Keys>>, ExploreError> {
            columns.iter().map(|key| table.keys(key)).collect()
        };
        let (key_columns, common_columns) = (decoded(&keys)?, decoded(&aggregates.common)?);
        let measures = aggregates.measures.iter();
        let measures: Result<Vec<Numbers>, ExploreError> = measures
            .map(|column| Numbers::new(&table, column, span, cut))
            .collect();
        let mut bounds: Vec<u32> = key_columns.iter().map(|keys| keys.bound()).collect();
        if bounds.is_empty() {
            bounds.push(0);
        }
        let opened = key_columns.iter().zip(&request.path);
        let path = opened.map(|(keys, id)| {
            let dense = keys.names.dense(*id)?;
            Some((dense != NULL_ID).then_some(dense))
        });
        Ok(Query {
            path: path.collect(),
            request,
            rows,
            span,
            cut,
            aggregates,
            sort,
            keys,
            key_columns,
            common_columns,
            measures: measures?,
            bounds,
        })
    }

    /// Returns the dense id of the group of unknown values. The next id represents all rows together.
    fn bound(&self) -> u32 {
        self.bounds[self.request.path.len()]
    }

    fn read(&self) -> Result<Groups, ExploreError> {
        let zeros = vec![0; self.rows.longest_chunk()];
        let add = |groups: &mut Groups, chunk: usize, rows: &Rows<'_>| match &self.path {
            Some(path) => self.add(groups, path, &zeros, chunk, rows),
            None => Ok(()),
        };
        self.rows.pass(|| self.empty(), add, Groups::merge)
    }

    fn empty(&self) -> Result<Groups, ExploreError> {
        let path = self.path.clone();
        let path = path.unwrap_or_else(|| vec![None; self.request.path.len()]);
        let percentiles = self.aggregates.percentiles;
        let pivot = |bounds: Vec<u32>| {
            Pivot::new(PivotSpec {
                bounds,
                path: path.clone(),
                measures: self.measures.len(),
                percentiles,
            })
        };
        let mut over_all = self.bounds[..path.len()].to_vec();
        over_all.push(0);
        let groups = self.bound() as usize + 2;
        Ok(Groups {
            groups: pivot(self.bounds.clone())?,
            all: percentiles.then(|| pivot(over_all)).transpose()?,
            common: vec![CommonValue::new(groups); self.common_columns.len()],
        })
    }

    /// Adds the rows of a chunk to their groups. If the request has no keys, `zeros` assigns all rows to
    /// group 0.
    fn add(
        &self,
        groups: &mut Groups,
        path: &[Option<u32>],
        zeros: &[u32],
        chunk: usize,
        rows: &Rows<'_>,
    ) -> Result<(), ExploreError> {
        let keys = self.key_columns.iter();
        let mut keys: Vec<&[u32]> = keys.map(|keys| keys.chunks[chunk].as_slice()).collect();
        if keys.is_empty() {
            keys.push(zeros);
        }
        let numbers = self.measures.iter().map(|numbers| numbers.chunk(chunk));
        let numbers: Vec<Cow<'_, [i64]>> = numbers.collect();
        let numbers: Vec<&[i64]> = numbers.iter().map(AsRef::as_ref).collect();
        groups.groups.add(&keys, &numbers, rows)?;
        if let Some(all) = &mut groups.all {
            all.add(&keys, &numbers, rows)?;
        }
        let (ids, bound) = (keys[path.len()], self.bound());
        let is_under_path = |row: usize| {
            let mut opened = keys.iter().zip(path).zip(&self.bounds);
            opened.all(|((ids, wanted), bound)| ids[row].min(*bound) == wanted.unwrap_or(*bound))
        };
        for (common, column) in groups.common.iter_mut().zip(&self.common_columns) {
            let column = &column.chunks[chunk];
            rows.each(|row| {
                if is_under_path(row) {
                    common.add(ids[row].min(bound), column[row]);
                    common.add(bound + 1, column[row]);
                }
            })?;
        }
        Ok(())
    }

    fn answer(self, groups: Groups) -> PivotAnswer {
        let bound = self.bound();
        let others: Vec<Vec<u32>> = groups
            .common
            .iter()
            .map(CommonValue::other_counts)
            .collect();
        let level = groups.groups.finish();
        let all = groups.all.and_then(|all| all.finish().groups.pop());
        let all = all.unwrap_or_else(|| Group {
            id: None,
            rows: level.rows,
            measures: level.totals.clone(),
            percentiles: Vec::new(),
        });
        let value = |dense: u32, group: &Group, requested: &RequestedAggregate| match requested {
            RequestedAggregate::Number(aggregate) => {
                Value::from(group.aggregate(*aggregate).map(Number::from))
            }
            RequestedAggregate::Common(key) => {
                let first = groups.common[*key].first[dense as usize];
                common_value(
                    &self.common_columns[*key].names,
                    first,
                    others[*key][dense as usize],
                )
            }
        };
        let values = |dense: u32, group: &Group| -> Vec<Value> {
            let requested = self.aggregates.requested.iter();
            requested.map(|one| value(dense, group, one)).collect()
        };
        let names = self.key_columns.last().map(|keys| &keys.names);
        let mut groups: Vec<(u32, Group)> = Vec::new();
        if let Some(names) = names {
            let dense = |group: Group| (group.id.unwrap_or(bound), group);
            groups.extend(level.groups.into_iter().map(dense));
            if let Some(search) = &self.request.search {
                let search = search.to_lowercase();
                groups.retain(|(id, _)| names.label(*id).to_lowercase().contains(&search));
            }
            self.sort.sort(&mut groups, names, |(dense, group), place| {
                value(*dense, group, &self.aggregates.requested[place])
            });
        }
        let groups_total = groups.len();
        let offset = usize::try_from(self.request.offset).unwrap_or(usize::MAX);
        let page = groups.iter().skip(offset);
        let page: Vec<&(u32, Group)> = page.take(self.request.first as usize).collect();
        let is_exact = |group: &Group| group.percentiles.iter().all(Percentiles::is_exact);
        let leaf = self.request.path.len() + 1 == self.request.keys.len();
        let shown = page.iter().map(|(dense, group)| PivotGroup {
            id: names.and_then(|names| names.id(*dense)),
            label: names.map_or_else(String::new, |names| names.label(*dense).into_owned()),
            rows: group.rows,
            values: values(*dense, group),
            leaf,
        });
        PivotAnswer {
            rows: level.rows,
            groups_total,
            totals: values(bound + 1, &all),
            groups: shown.collect(),
            exact: is_exact(&all) && page.iter().all(|(_, group)| is_exact(group)),
            sql: self.sql(),
        }
    }

    fn sql(&self) -> String {
        let request = self.request;
        let mut conditions = self.rows.sql.clone();
        for ((key, decoded), id) in self.keys.iter().zip(&self.key_columns).zip(&request.path) {
            let dense: Vec<u32> = decoded.names.dense(*id).into_iter().collect();
            conditions.push(query::is_one_of(key, &decoded.names, &dense));
        }
        let key = self.keys.get(request.path.len());
        if let (Some(key), Some(search)) = (key, &request.search) {
            conditions.push(query::contains(key, search));
        }
        let def = self.rows.table.def;
        let mut columns: Vec<String> = key.iter().map(|key| key.named()).collect();
        columns.push("count(*) AS rows".to_owned());
        for (requested, text) in self.aggregates.requested.iter().zip(&request.aggregates) {
            if text != ROWS {
                let sql = self.aggregates.sql(requested, def, self.span, self.cut);
                columns.push(format!("{sql} AS {}", query::quoted(text)));
            }
        }
        let columns = columns.join(",\n  ");
        let (table, conditions) = (def.table.name(), query::filter(&conditions));
        let mut sql = format!("SELECT\n  {columns}\nFROM {table}{conditions}");
        if let Some(key) = key {
            let groups = key.group_by().join(", ");
            let order = self.sort.sql(key, &request.aggregates);
            sql += &format!("\nGROUP BY {groups}\nORDER BY {order}");
            sql += &format!("\nLIMIT {}", request.first);
            if request.offset > 0 {
                sql += &format!(" OFFSET {}", request.offset);
            }
        }
        sql
    }
}

impl Groups {
    fn merge(&mut self, other: Groups) {
        self.groups.merge(&other.groups);
        if let (Some(all), Some(other)) = (&mut self.all, &other.all) {
            all.merge(other);
        }
        for (common, other) in self.common.iter_mut().zip(other.common) {
            common.merge(other);
        }
    }
}

/// Numbers from which aggregates are computed.
enum Numbers {
    Column(Arc<Measures>),
    TimeInView(TimeInView),
    /// Durations that are cut to the time range.
    Cut(TimeInView),
}

impl Numbers {
    fn new(
        table: &OpenTable<'_>,
        column: &'static ColumnDef,
        span: TimeRange,
        cut: bool,
    ) -> Result<Numbers, ExploreError> {
        if let Some(durations) = Durations::find(table.def, column).filter(|_| cut) {
            let rows = table.durations(durations)?;
            return Ok(Numbers::Cut(TimeInView::from_intervals(rows, span)));
        }
        let in_view = match column.source {
            Source::InView => TimeInView::new(table, span)?,
            _ => None,
        };
        Ok(match in_view {
            Some(in_view) => Numbers::TimeInView(in_view),
            None => Numbers::Column(table.measures(column)?),
        })
    }

    fn chunk(&self, chunk: usize) -> Cow<'_, [i64]> {
        match self {
            Numbers::Column(numbers) => Cow::Borrowed(&numbers.chunks[chunk]),
            Numbers::TimeInView(in_view) => Cow::Owned(in_view.chunk_ns(chunk)),
            Numbers::Cut(durations) => Cow::Owned(durations.known_ns(chunk)),
        }
    }
}

/// Returns the common value of a key in a group. `first` is one of the key's ids in the group. `others` is
/// the number of other ids in the group.
fn common_value(names: &Names, first: Option<u32>, others: u32) -> Value {
    match (first, others) {
        (None, _) => Value::Unknown,
        (Some(dense), 0) => match names.known_label(dense) {
            Some(label) => Value::Text(label.into_owned()),
            None => Value::Unknown,
        },
        (Some(_), others) => Value::Different {
            different: u64::from(others) + 1,
        },
    }
}

/// Checked order of the groups.
struct Sorting {
    by: SortBy,
    descending: bool,
}

enum SortBy {
    Key,
    Rows,
    /// Index of an aggregate of the request.
    Aggregate(usize),
}

impl Sorting {
    fn parse(request: &PivotRequest) -> Result<Sorting, ExploreError> {
        let Some(sort) = &request.sort else {
            return Ok(Sorting {
                by: SortBy::Rows,
                descending: true,
            });
        };
        let place = || request.aggregates.iter().position(|text| *text == sort.by);
        let by = match sort.by.as_str() {
            KEY => SortBy::Key,
            ROWS => SortBy::Rows,
            _ => SortBy::Aggregate(place().ok_or_else(|| ExploreError::OutOfBounds {
                field: "sort",
                needed: "must be by `key`, `rows` or one of the requested aggregates".to_owned(),
            })?),
        };
        Ok(Sorting {
            by,
            descending: sort.descending,
        })
    }

    /// Sorts groups. `value` returns the aggregate with the given index.
    fn sort(
        &self,
        groups: &mut Vec<(u32, Group)>,
        names: &Names,
        value: impl Fn(&(u32, Group), usize) -> Value,
    ) {
        let rank = |dense: u32| {
            if (dense as usize) < names.len() {
                names.rank(dense)
            } else {
                NULL_ID
            }
        };
        let directed = |order: Ordering| {
            if self.descending {
                order.reverse()
            } else {
                order
            }
        };
        match &self.by {
            // The group of unknown values is last in both directions.
            SortBy::Key => groups.sort_by(|(a, _), (b, _)| {
                let (a, b) = (rank(*a), rank(*b));
                let unknown = (a == NULL_ID).cmp(&(b == NULL_ID));
                unknown.then(directed(a.cmp(&b)))
            }),
            SortBy::Rows => groups.sort_by(|(a, of_a), (b, of_b)| {
                directed(of_a.rows.cmp(&of_b.rows)).then_with(|| rank(*a).cmp(&rank(*b)))
            }),
            SortBy::Aggregate(place) => {
                let unsorted = std::mem::take(groups).into_iter();
                let mut keyed: Vec<(Value, (u32, Group))> = unsorted
                    .map(|group| (value(&group, *place), group))
                    .collect();
                keyed.sort_by(|(of_a, (a, _)), (of_b, (b, _))| {
                    let order = match (of_a, of_b) {
                        (Value::Unknown, Value::Unknown) => Ordering::Equal,
                        (Value::Unknown, _) => Ordering::Greater,
                        (_, Value::Unknown) => Ordering::Less,
                        (a, b) => directed(a.compare(b)),
                    };
                    order.then_with(|| rank(*a).cmp(&rank(*b)))
                });
                groups.extend(keyed.into_iter().map(|(_, group)| group));
            }
        }
    }

    /// Returns the order as SQL.
    fn sql(&self, key: &ColumnDef, aggregates: &[String]) -> String {
        let direction = if self.descending { "DESC" } else { "ASC" };
        let by_key = |direction: &str| {
            let order = key.order().into_iter();
            let order = order.map(|column| format!("{column} {direction} NULLS LAST"));
            order.collect::<Vec<String>>().join(", ")
        };
        match &self.by {
            SortBy::Key => by_key(direction),
            SortBy::Rows => format!("rows {direction}, {}", by_key("ASC")),
            SortBy::Aggregate(place) => format!(
                "{} {direction} NULLS LAST, {}",
                query::quoted(&aggregates[*place]),
                by_key("ASC")
            ),
        }
    }
}
