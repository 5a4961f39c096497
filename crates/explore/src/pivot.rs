//! The groups of one level, summed up and sorted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use views::{Aggregate, Group, NULL_ID, Order, Pivot, PivotSpec, Rows, TimeRange};

use crate::aggregates::{Aggregates, Wanted};
use crate::catalogue::{ColumnDef, Source};
use crate::columns::{Keys, Measures, Opened};
use crate::in_view::InView;
use crate::names::Names;
use crate::same::Same;
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::timeline::ROWS;
use crate::{Condition, ExploreError, Id, Number, Value, query};

/// Asks for the groups of one level of a table's tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PivotRequest {
    /// The table.
    pub table: String,
    /// The keys left of the golden bar, outermost first. Without any there are only totals.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The groups opened, outermost first: the groups of the next key are asked for.
    #[serde(default)]
    pub path: Vec<Id>,
    /// What is computed of each group: `rows`, `COLUMN:sum`, `count`, `mean`, `min`, `max`, `p50`,
    /// `p90`, `p95`, `p99`, `p999`; a key's name for the value that all rows of the group have.
    #[serde(default)]
    pub aggregates: Vec<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// How groups are sorted: by their rows, most first, if nothing is said.
    #[serde(default)]
    pub sort: Option<GroupSort>,
    /// Groups left out first.
    #[serde(default)]
    pub offset: u64,
    /// Groups given then, at most 1000.
    pub first: u32,
    /// Groups whose label contains this, whatever the case.
    #[serde(default)]
    pub search: Option<String>,
}

/// How groups are sorted; equals by id, groups without a value last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSort {
    /// `key` for the groups themselves, or one of the aggregates or `rows`.
    pub by: String,
    /// Greatest first.
    pub descending: bool,
}

/// The groups of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PivotAnswer {
    /// Rows of all groups together, those not searched for too.
    pub rows: u64,
    /// How many groups there are (of those searched for).
    pub groups_total: usize,
    /// The aggregates over all of these rows.
    pub totals: Vec<Value>,
    /// The groups asked for.
    pub groups: Vec<PivotGroup>,
    /// Whether percentiles are exact: of groups beyond some thousand rows they are within 1 %.
    pub exact: bool,
    /// The query that gives the same.
    pub sql: String,
}

/// The rows of one id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PivotGroup {
    /// The id.
    pub id: Id,
    /// The group in words.
    pub label: String,
    /// Its rows.
    pub rows: u64,
    /// The aggregates, in the order asked for.
    pub values: Vec<Value>,
    /// Whether it is of the last key.
    pub leaf: bool,
}

/// The most groups of an answer.
const MOST_GROUPS: u64 = 1000;
/// The most keys, and the most aggregates.
const MOST_COLUMNS: u64 = 64;
/// The groups themselves, in a sort.
const KEY: &str = "key";

/// Where numbers that are summed up come from.
enum Summed {
    Column(Arc<Measures>),
    InView(InView),
}

impl Summed {
    fn new(
        ask: Ask<'_>,
        table: &Opened,
        column: &'static ColumnDef,
        span: TimeRange,
    ) -> Result<Summed, ExploreError> {
        let in_view = match column.source {
            Source::InView => InView::new(ask, table, span)?,
            _ => None,
        };
        Ok(match in_view {
            Some(in_view) => Summed::InView(in_view),
            None => Summed::Column(ask.measures(table, column)?),
        })
    }

    fn chunk(&self, chunk: usize) -> Cow<'_, [i64]> {
        match self {
            Summed::Column(numbers) => Cow::Borrowed(&numbers.chunks[chunk]),
            Summed::InView(in_view) => Cow::Owned(in_view.chunk(chunk)),
        }
    }
}

/// What a pass over the rows sees.
struct Seen {
    groups: Pivot,
    /// All rows as one group, where percentiles are wanted: those of groups do not add up.
    all: Option<Pivot>,
    /// By key looked at; all rows as one group come after those of groups.
    same: Vec<Same>,
}

pub(crate) fn answer(ask: Ask<'_>, request: &PivotRequest) -> Result<PivotAnswer, ExploreError> {
    let def = crate::catalogue::table(&request.table)?;
    bounded("first", request.first.into(), 0, MOST_GROUPS)?;
    bounded("keys", request.keys.len() as u64, 0, MOST_COLUMNS)?;
    bounded(
        "aggregates",
        request.aggregates.len() as u64,
        0,
        MOST_COLUMNS,
    )?;
    let deepest = (request.keys.len() as u64).saturating_sub(1);
    bounded("path", request.path.len() as u64, 0, deepest)?;
    let keys: Result<Vec<&'static ColumnDef>, ExploreError> =
        request.keys.iter().map(|key| def.key(key)).collect();
    let keys = &keys?[..(request.path.len() + 1).min(request.keys.len())];
    let aggregates = Aggregates::parse(def, &request.aggregates)?;
    let sort = Sorting::parse(request)?;
    let range = range_of(request.range)?;
    let table = ask.open(&request.table)?;
    let selection = Selection::new(ask, &table, Within::Overlap, range, &request.filter)?;
    let decoded = |columns: &[&'static ColumnDef]| -> Result<Vec<Arc<Keys>>, ExploreError> {
        columns.iter().map(|key| ask.keys(&table, key)).collect()
    };
    let (key_columns, same_columns) = (decoded(keys)?, decoded(&aggregates.same)?);
    let span = ask.span(request.range, &table)?;
    let measures: Result<Vec<Summed>, ExploreError> = aggregates
        .measures
        .iter()
        .map(|column| Summed::new(ask, &table, column, span))
        .collect();
    let measures = measures?;
    let opened = key_columns.iter().zip(&request.path);
    // An id that there is not has no rows.
    let mut path = Vec::with_capacity(request.path.len());
    let mut is_empty = false;
    for (keys, id) in opened {
        let dense = keys.names.dense(*id);
        is_empty |= dense.is_none();
        path.push(dense.filter(|dense| *dense != NULL_ID));
    }
    let bounds: Vec<u32> = key_columns.iter().map(|keys| keys.bound()).collect();
    let bounds = if bounds.is_empty() { vec![0] } else { bounds };
    let bound = bounds[path.len()];
    let make = || {
        let spec = |bounds: Vec<u32>, path| PivotSpec {
            bounds,
            path,
            measures: measures.len(),
            percentiles: aggregates.percentiles,
        };
        let mut over_all = bounds[..path.len()].to_vec();
        over_all.push(0);
        let all = aggregates
            .percentiles
            .then(|| Pivot::new(spec(over_all, path.clone())));
        Ok(Seen {
            groups: Pivot::new(spec(bounds.clone(), path.clone()))?,
            all: all.transpose()?,
            same: vec![Same::new(bound as usize + 2); same_columns.len()],
        })
    };
    let zeros = vec![0; selection.longest_chunk()];
    let add = |seen: &mut Seen, chunk: usize, rows: &Rows<'_>| {
        if is_empty {
            return Ok(());
        }
        let mut keys: Vec<&[u32]> = key_columns
            .iter()
            .map(|keys| keys.chunks[chunk].as_slice())
            .collect();
        if keys.is_empty() {
            keys.push(&zeros);
        }
        let numbers: Vec<Cow<'_, [i64]>> =
            measures.iter().map(|summed| summed.chunk(chunk)).collect();
        let numbers: Vec<&[i64]> = numbers.iter().map(AsRef::as_ref).collect();
        seen.groups.add(&keys, &numbers, rows)?;
        if let Some(all) = &mut seen.all {
            all.add(&keys, &numbers, rows)?;
        }
        let ids = keys[path.len()];
        for (same, column) in seen.same.iter_mut().zip(&same_columns) {
            let column = &column.chunks[chunk];
            let under_path = |row: usize| {
                let opened = keys.iter().zip(&path).zip(&bounds);
                let mut opened = opened
                    .map(|((ids, wanted), bound)| ids[row].min(*bound) == wanted.unwrap_or(*bound));
                opened.all(|is| is)
            };
            rows.each(|row| {
                if path.is_empty() || under_path(row) {
                    same.add(ids[row].min(bound), column[row]);
                    same.add(bound + 1, column[row]);
                }
            })?;
        }
        Ok(())
    };
    let merge = |seen: &mut Seen, more: Seen| {
        seen.groups.merge(&more.groups);
        if let (Some(all), Some(more)) = (&mut seen.all, &more.all) {
            all.merge(more);
        }
        for (same, more) in seen.same.iter_mut().zip(more.same) {
            same.merge(more);
        }
    };
    let seen = selection.pass(make, add, merge)?;
    let more: Vec<Vec<u32>> = seen.same.iter().map(Same::more).collect();
    let value = |group: &Group, place: u32, wanted: &Wanted| match wanted {
        Wanted::Number(aggregate) => Value::from(group.aggregate(*aggregate).map(Number::from)),
        Wanted::Same(key) => match (
            seen.same[*key].first[place as usize],
            more[*key][place as usize],
        ) {
            (None, _) => Value::Unknown,
            (Some(dense), 0) => {
                let label = same_columns[*key].names.known_label(dense);
                label.map_or(Value::Unknown, |label| Value::Text(label.into_owned()))
            }
            (Some(_), more) => Value::Different {
                different: u64::from(more) + 1,
            },
        },
    };
    let by_rows = Order {
        by: Aggregate::Rows,
        descending: true,
    };
    let level = seen.groups.finish(by_rows, usize::MAX);
    let all = match seen.all {
        Some(all) => all.finish(by_rows, 1).groups.pop(),
        None => None,
    };
    let all = all.unwrap_or_else(|| Group {
        id: None,
        rows: level.rows,
        measures: level.totals.clone(),
        percentiles: Vec::new(),
    });
    let names: Option<&Names> = key_columns.last().map(|keys| &keys.names);
    let mut groups: Vec<(u32, Group)> = match names {
        Some(_) => level
            .groups
            .into_iter()
            .map(|group| (group.id.unwrap_or(bound), group))
            .collect(),
        None => Vec::new(),
    };
    if let (Some(names), Some(search)) = (names, &request.search) {
        let search = search.to_lowercase();
        groups.retain(|(dense, _)| names.label(*dense).to_lowercase().contains(&search));
    }
    if let Some(names) = names {
        let value = |group: &(u32, Group), wanted: &Wanted| value(&group.1, group.0, wanted);
        sort.sort(&mut groups, names, &aggregates, value);
    }
    let groups_total = groups.len();
    let is_exact = |group: &Group| group.percentiles.iter().all(views::Percentiles::is_exact);
    let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let leaf = request.path.len() + 1 == request.keys.len();
    let shown: Vec<&(u32, Group)> = groups
        .iter()
        .skip(offset)
        .take(request.first as usize)
        .collect();
    let exact = is_exact(&all) && shown.iter().all(|(_, group)| is_exact(group));
    let values = |group: &Group, place: u32| -> Vec<Value> {
        let wanted = aggregates.wanted.iter();
        wanted.map(|wanted| value(group, place, wanted)).collect()
    };
    Ok(PivotAnswer {
        rows: level.rows,
        groups_total,
        totals: values(&all, bound + 1),
        groups: shown
            .into_iter()
            .map(|(dense, group)| PivotGroup {
                id: names.and_then(|names| names.id(*dense)),
                label: names.map_or_else(String::new, |names| names.label(*dense).into_owned()),
                rows: group.rows,
                values: values(group, *dense),
                leaf,
            })
            .collect(),
        exact,
        sql: sql(
            request,
            &selection,
            keys,
            &key_columns,
            (&aggregates, span),
            &sort,
        ),
    })
}

/// How groups are sorted.
struct Sorting {
    by: SortBy,
    descending: bool,
}

enum SortBy {
    Key,
    Rows,
    /// By its place among the aggregates.
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
                needed: "must be by `key`, `rows` or one of the aggregates asked for".to_owned(),
            })?),
        };
        Ok(Sorting {
            by,
            descending: sort.descending,
        })
    }

    fn sort(
        &self,
        groups: &mut [(u32, Group)],
        names: &Names,
        aggregates: &Aggregates,
        value: impl Fn(&(u32, Group), &Wanted) -> Value,
    ) {
        let rank = |dense: u32| {
            if (dense as usize) < names.len() {
                names.rank(dense)
            } else {
                NULL_ID
            }
        };
        let directed = |order: Ordering| match self.descending {
            true => order.reverse(),
            false => order,
        };
        match &self.by {
            // The unknown is last, whichever way.
            SortBy::Key => groups.sort_by(|(a, _), (b, _)| {
                let (a, b) = (rank(*a), rank(*b));
                let unknown = (a == NULL_ID).cmp(&(b == NULL_ID));
                unknown.then(directed(a.cmp(&b)))
            }),
            SortBy::Rows => groups.sort_by(|(a, of_a), (b, of_b)| {
                directed(of_a.rows.cmp(&of_b.rows)).then_with(|| rank(*a).cmp(&rank(*b)))
            }),
            SortBy::Aggregate(place) => {
                let wanted = &aggregates.wanted[*place];
                let mut keyed: Vec<(Value, u32, Group)> = Vec::with_capacity(groups.len());
                for (dense, group) in groups.iter() {
                    let pair = (*dense, group.clone());
                    let of = value(&pair, wanted);
                    keyed.push((of, pair.0, pair.1));
                }
                keyed.sort_by(|(of_a, a, _), (of_b, b, _)| {
                    let order = match (of_a, of_b) {
                        (Value::Unknown, Value::Unknown) => Ordering::Equal,
                        (Value::Unknown, _) => Ordering::Greater,
                        (_, Value::Unknown) => Ordering::Less,
                        (a, b) => directed(a.compare(b)),
                    };
                    order.then_with(|| rank(*a).cmp(&rank(*b)))
                });
                for (sorted, group) in keyed.into_iter().zip(groups) {
                    *group = (sorted.1, sorted.2);
                }
            }
        }
    }
}

fn sql(
    request: &PivotRequest,
    selection: &Selection<'_>,
    keys: &[&'static ColumnDef],
    decoded: &[Arc<Keys>],
    (aggregates, span): (&Aggregates, TimeRange),
    sort: &Sorting,
) -> String {
    let mut conditions = selection.sql.clone();
    for ((key, decoded), id) in keys.iter().zip(decoded).zip(&request.path) {
        let dense: Vec<u32> = decoded.names.dense(*id).into_iter().collect();
        conditions.push(query::is_one_of(key, &decoded.names, &dense));
    }
    let key = keys.get(request.path.len());
    if let (Some(key), Some(search)) = (key, &request.search) {
        conditions.push(query::contains(key, search));
    }
    let mut columns: Vec<String> = key.iter().map(|key| key.named()).collect();
    columns.push("count(*) AS rows".to_owned());
    for (wanted, text) in aggregates.wanted.iter().zip(&request.aggregates) {
        if text != ROWS {
            columns.push(format!(
                "{} AS {}",
                aggregates.sql(wanted, selection.table.def, span),
                query::quoted(text)
            ));
        }
    }
    let columns = columns.join(",\n  ");
    let table = selection.table.def.table.name();
    let conditions = query::filter(&conditions);
    let mut sql = format!("SELECT\n  {columns}\nFROM {table}{conditions}");
    if let Some(key) = key {
        let groups = key.group_by().join(", ");
        let direction = if sort.descending { "DESC" } else { "ASC" };
        let by_key = |direction: &str| {
            let order = key.order().into_iter();
            let order = order.map(|column| format!("{column} {direction} NULLS LAST"));
            order.collect::<Vec<String>>().join(", ")
        };
        let order = match &sort.by {
            SortBy::Key => by_key(direction),
            SortBy::Rows => format!("rows {direction}, {}", by_key("ASC")),
            SortBy::Aggregate(place) => format!(
                "{} {direction} NULLS LAST, {}",
                query::quoted(&request.aggregates[*place]),
                by_key("ASC")
            ),
        };
        sql += &format!("\nGROUP BY {groups}\nORDER BY {order}");
        sql += &format!("\nLIMIT {}", request.first);
        if request.offset > 0 {
            sql += &format!(" OFFSET {}", request.offset);
        }
    }
    sql
}
