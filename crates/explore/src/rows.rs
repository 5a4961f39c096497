//! Single rows of a table.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{NULL, NULL_ID, Rows, TimeRange};

use crate::catalogue::{ColumnDef, Source};
use crate::context::{Context, OpenTable, check_bounds, range_of};
use crate::decoded_columns::{Keys, Measures};
use crate::in_view::TimeInView;
use crate::query::{self, RangeRule};
use crate::selected_rows::SelectedRows;
use crate::view::Sort;
use crate::{ColumnKind, Condition, ExploreError, Number, Value};

/// Request for single rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct RowsRequest {
    /// Name of the table.
    pub table: String,
    /// Names of the columns to return.
    pub columns: Vec<String>,
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Conditions that rows must satisfy.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub filter: Vec<Condition>,
    /// Order of the rows; the order of the table if absent.
    #[serde(default)]
    pub sort: Option<Sort>,
    /// Number of rows to skip.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub offset: u64,
    /// Maximum number of returned rows, up to 1000.
    pub first: u32,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct RowsAnswer {
    /// Number of rows that satisfy the conditions, on all pages.
    pub rows: u64,
    /// Description of the returned columns.
    pub columns: Vec<RowColumn>,
    /// Values: a list for each row, with a value for each column. Keys have their labels as values.
    pub values: Vec<Vec<Value>>,
    /// SQL query that returns the same rows.
    pub sql: String,
}

/// Description of a returned column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct RowColumn {
    /// Name of the column.
    pub name: String,
    /// Title for the user.
    pub title: String,
    /// Use of the column in views.
    pub kind: ColumnKind,
    /// Unit of the numbers; empty if they have no unit.
    pub unit: &'static str,
}

/// Maximum number of rows in an answer.
const MAX_ROWS: u64 = 1000;
/// Maximum number of columns in an answer.
const MAX_COLUMNS: u64 = 64;

/// Position of a row: its chunk and its index in the chunk.
type Place = (usize, usize);

/// Column by which rows are sorted.
enum SortColumn {
    Keys(Arc<Keys>),
    Numbers(Arc<Measures>),
}

pub(crate) fn answer(
    context: Context<'_>,
    request: &RowsRequest,
) -> Result<RowsAnswer, ExploreError> {
    let def = crate::catalogue::table(&request.table)?;
    check_bounds("first", request.first.into(), 0, MAX_ROWS)?;
    check_bounds("columns", request.columns.len() as u64, 1, MAX_COLUMNS)?;
    let columns: Result<Vec<&'static ColumnDef>, ExploreError> = request
        .columns
        .iter()
        .map(|name| def.column(name))
        .collect();
    let columns = columns?;
    let sort = match &request.sort {
        None => None,
        Some(sort) => match def.column(&sort.column)? {
            column if column.kind == ColumnKind::Text => {
                return Err(def.wrong_kind(
                    column,
                    "cannot define the order; choose a key, measure or time",
                ));
            }
            column => Some((column, sort.descending)),
        },
    };
    let range = range_of(request.range)?;
    let table = context.open(&request.table)?;
    let selected = SelectedRows::new(&table, RangeRule::Overlap, range, &request.filter)?;
    let span = table.span(request.range)?;
    let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let (rows, places) = match sort {
        None => in_order(&selected, offset, request.first as usize)?,
        Some((column, descending)) => {
            let by = match column.kind {
                ColumnKind::Key => SortColumn::Keys(table.keys(column)?),
                _ => SortColumn::Numbers(table.measures(column)?),
            };
            sorted(&selected, &by, descending, offset, request.first as usize)?
        }
    };
    let mut values = vec![Vec::with_capacity(columns.len()); places.len()];
    for column in &columns {
        let cells = match column.source {
            Source::InView => time_in_view(&table, span, &places)?,
            _ => cells(&table, column, &places)?,
        };
        for (row, cell) in values.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    let shown = columns.iter().map(|column| RowColumn {
        name: column.name.clone(),
        title: column.title.clone(),
        kind: column.kind,
        unit: column.unit,
    });
    Ok(RowsAnswer {
        rows,
        columns: shown.collect(),
        values,
        sql: sql(request, &selected, &columns, span, sort),
    })
}

/// Returns the number of selected rows, and the positions of the requested rows in the order of the table.
fn in_order(
    selected: &SelectedRows<'_>,
    offset: usize,
    first: usize,
) -> Result<(u64, Vec<Place>), ExploreError> {
    let count = |counts: &mut Vec<(usize, usize)>, chunk: usize, rows: &Rows<'_>| {
        counts.push((chunk, rows.count()));
        Ok(())
    };
    let counts = selected.pass(|| Ok(Vec::new()), count, |all, more| all.extend(more))?;
    let all: u64 = counts.iter().map(|(_, rows)| *rows as u64).sum();
    let mut to_skip = offset;
    let mut places = Vec::new();
    for (chunk, rows) in counts {
        if places.len() == first {
            break;
        }
        if to_skip >= rows {
            to_skip -= rows;
            continue;
        }
        selected.rows(chunk)?.each(|row| {
            if to_skip > 0 {
                to_skip -= 1;
            } else if places.len() < first {
                places.push((chunk, row));
            }
        })?;
    }
    Ok((all, places))
}

/// Returns the number of selected rows, and the positions of the requested rows in the order of a column.
/// Rows with equal values keep the order of the table. Rows with an unknown value are last.
fn sorted(
    selected: &SelectedRows<'_>,
    by: &SortColumn,
    descending: bool,
    offset: usize,
    first: usize,
) -> Result<(u64, Vec<Place>), ExploreError> {
    type Keyed = (bool, i64, Place);
    let wanted = offset.saturating_add(first);
    let keep = move |rows: &mut Vec<Keyed>| {
        if wanted < rows.len() {
            rows.select_nth_unstable(wanted);
            rows.truncate(wanted);
        }
    };
    // Rows that are not needed are dropped only after many rows were collected, because dropping requires a slow sort.
    let most = wanted.saturating_mul(2).max(1 << 16);
    let make = || Ok((0u64, Vec::new()));
    let add = |(count, kept): &mut (u64, Vec<Keyed>), chunk: usize, rows: &Rows<'_>| {
        let key = |row: usize| match by {
            SortColumn::Keys(keys) => {
                let dense = keys.chunks[chunk][row];
                (dense != NULL_ID).then(|| i64::from(keys.names.rank(dense)))
            }
            SortColumn::Numbers(numbers) => {
                Some(numbers.chunks[chunk][row]).filter(|number| *number != NULL)
            }
        };
        rows.each(|row| {
            *count += 1;
            let known = key(row);
            let key = known.unwrap_or_default();
            kept.push((
                known.is_none(),
                if descending { !key } else { key },
                (chunk, row),
            ));
            if kept.len() > most {
                keep(kept);
            }
        })?;
        Ok(())
    };
    let merge = |all: &mut (u64, Vec<Keyed>), more: (u64, Vec<Keyed>)| {
        all.0 += more.0;
        all.1.extend(more.1);
    };
    let (count, mut rows) = selected.pass(make, add, merge)?;
    keep(&mut rows);
    rows.sort_unstable();
    let places = rows.into_iter().skip(offset).map(|(_, _, place)| place);
    Ok((count, places.collect()))
}

/// Returns the durations of rows within a time range.
fn time_in_view(
    table: &OpenTable<'_>,
    span: TimeRange,
    places: &[Place],
) -> Result<Vec<Value>, ExploreError> {
    let in_view = TimeInView::new(table, span)?;
    let cell = |(chunk, row): &Place| {
        let ns = in_view.as_ref().map(|in_view| in_view.row_ns(*chunk, *row));
        Value::from(ns.map(Number::Integer))
    };
    Ok(places.iter().map(cell).collect())
}

/// Returns the values of a column in the given rows.
fn cells(
    table: &OpenTable<'_>,
    column: &'static ColumnDef,
    places: &[Place],
) -> Result<Vec<Value>, ExploreError> {
    match column.kind {
        ColumnKind::Key => {
            let keys = table.keys(column)?;
            let cell = |(chunk, row): &Place| {
                let dense = keys.chunks[*chunk][*row];
                match (column.source, keys.names.number(dense)) {
                    (Source::Number(_), Some(number)) => Value::Number(Number::Integer(number)),
                    (Source::Flag(_), _) if dense != NULL_ID => Value::Flag(dense == 1),
                    _ => match keys.names.known_label(dense) {
                        Some(label) => Value::Text(label.into_owned()),
                        None => Value::Unknown,
                    },
                }
            };
            Ok(places.iter().map(cell).collect())
        }
        ColumnKind::Measure | ColumnKind::Time => {
            let numbers = table.measures(column)?;
            let number = |(chunk, row): &Place| {
                let number = numbers.chunks[*chunk][*row];
                Value::from((number != NULL).then_some(Number::Integer(number)))
            };
            Ok(places.iter().map(number).collect())
        }
        ColumnKind::Text => texts(table, column, places),
        ColumnKind::Test => Err(table
            .def
            .wrong_kind(column, "cannot be shown with rows; use it in a filter")),
    }
}

/// Returns the values of a column of text. Reads only chunks that contain one of the rows.
fn texts(
    table: &OpenTable<'_>,
    column: &'static ColumnDef,
    places: &[Place],
) -> Result<Vec<Value>, ExploreError> {
    let mut cells = vec![Value::Unknown; places.len()];
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|place| places[*place].0);
    for of_chunk in order.chunk_by(|a, b| places[*a].0 == places[*b].0) {
        let chunk = places[of_chunk[0]].0;
        let batch = table.stored.read(chunk, &[&column.name])?;
        let array = batch.column_by_name(&column.name);
        let Some(texts) = array.and_then(|array| array.as_string_opt::<i32>()) else {
            continue;
        };
        for place in of_chunk {
            let text = texts.iter().nth(places[*place].1).flatten();
            cells[*place] = text.map_or(Value::Unknown, |text| Value::Text(text.to_owned()));
        }
    }
    Ok(cells)
}

fn sql(
    request: &RowsRequest,
    selected: &SelectedRows<'_>,
    columns: &[&'static ColumnDef],
    span: TimeRange,
    sort: Option<(&'static ColumnDef, bool)>,
) -> String {
    let table = selected.table.def;
    let shown = columns.iter().map(|column| match column.source {
        Source::InView => format!("{} AS {}", TimeInView::sql(table, span), column.name),
        _ => column.named(),
    });
    let shown: Vec<String> = shown.collect();
    let mut order = Vec::new();
    if let Some((column, descending)) = sort {
        let direction = if descending { "DESC" } else { "ASC" };
        let by = column.order_of_rows().into_iter();
        order.extend(by.map(|by| format!("{by} {direction} NULLS LAST")));
    }
    order.push(table.time.to_owned());
    let mut sql = format!(
        "SELECT\n  {}\nFROM {}{}\nORDER BY {}\nLIMIT {}",
        shown.join(",\n  "),
        table.table.name(),
        query::filter(&selected.sql),
        order.join(", "),
        request.first
    );
    if request.offset > 0 {
        sql += &format!(" OFFSET {}", request.offset);
    }
    sql
}
