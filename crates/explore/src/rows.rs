//! The rows themselves.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use serde::{Deserialize, Serialize};
use views::{NULL, NULL_ID, Rows, TimeRange};

use crate::catalogue::{ColumnDef, Source};
use crate::columns::{Keys, Measures, Opened};
use crate::in_view::InView;
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::{ColumnKind, Condition, ExploreError, Number, Sort, Value, query};

/// Asks for rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsRequest {
    /// The table.
    pub table: String,
    /// Columns to show.
    pub columns: Vec<String>,
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Which rows count.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// How they are sorted: as the table is, if nothing is said.
    #[serde(default)]
    pub sort: Option<Sort>,
    /// Rows left out first.
    #[serde(default)]
    pub offset: u64,
    /// Rows given then, at most 1000.
    pub first: u32,
}

/// Some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowsAnswer {
    /// How many rows there are.
    pub rows: u64,
    /// The columns asked for.
    pub columns: Vec<RowColumn>,
    /// By row, then by column; ids are given as their labels.
    pub values: Vec<Vec<Value>>,
    /// The query that gives the same.
    pub sql: String,
}

/// A column of shown rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowColumn {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is.
    pub kind: ColumnKind,
    /// The unit of its numbers.
    pub unit: &'static str,
}

/// The most rows of an answer, and the most columns.
const MOST_ROWS: u64 = 1000;
const MOST_COLUMNS: u64 = 64;

/// Where a row is: its chunk, and its place there.
type Place = (usize, usize);

/// What rows are sorted by.
enum SortColumn {
    Keys(Arc<Keys>),
    Numbers(Arc<Measures>),
}

pub(crate) fn answer(ask: Ask<'_>, request: &RowsRequest) -> Result<RowsAnswer, ExploreError> {
    let def = crate::catalogue::table(&request.table)?;
    bounded("first", request.first.into(), 0, MOST_ROWS)?;
    bounded("columns", request.columns.len() as u64, 1, MOST_COLUMNS)?;
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
                return Err(def.wrong(column, "cannot be sorted by; take a key, measure or time"));
            }
            column => Some((column, sort.descending)),
        },
    };
    let range = range_of(request.range)?;
    let table = ask.open(&request.table)?;
    let selection = Selection::new(ask, &table, Within::Overlap, range, &request.filter)?;
    let span = ask.span(request.range, &table)?;
    let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let (rows, places) = match sort {
        None => in_order(&selection, offset, request.first as usize)?,
        Some((column, descending)) => {
            let by = match column.kind {
                ColumnKind::Key => SortColumn::Keys(ask.keys(&table, column)?),
                _ => SortColumn::Numbers(ask.measures(&table, column)?),
            };
            sorted(&selection, &by, descending, offset, request.first as usize)?
        }
    };
    let mut values = vec![Vec::with_capacity(columns.len()); places.len()];
    for column in &columns {
        let cells = match column.source {
            Source::InView => in_view(ask, &table, span, &places)?,
            _ => cells(ask, &table, column, &places)?,
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
        sql: sql(request, &selection, &columns, span, sort),
    })
}

/// How many rows there are, and the places of some in the order of the table.
fn in_order(
    selection: &Selection<'_>,
    offset: usize,
    first: usize,
) -> Result<(u64, Vec<Place>), ExploreError> {
    let count = |counts: &mut Vec<(usize, usize)>, chunk: usize, rows: &Rows<'_>| {
        counts.push((chunk, rows.count()));
        Ok(())
    };
    let counts = selection.pass(|| Ok(Vec::new()), count, |all, more| all.extend(more))?;
    let all: u64 = counts.iter().map(|(_, rows)| *rows as u64).sum();
    let mut left_out = offset;
    let mut places = Vec::new();
    for (chunk, rows) in counts {
        if places.len() == first {
            break;
        }
        if left_out >= rows {
            left_out -= rows;
            continue;
        }
        selection.rows(chunk)?.each(|row| {
            if left_out > 0 {
                left_out -= 1;
            } else if places.len() < first {
                places.push((chunk, row));
            }
        })?;
    }
    Ok((all, places))
}

/// How many rows there are, and the places of some in the order of a column; equals in that of the
/// table, the unknown last.
fn sorted(
    selection: &Selection<'_>,
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
    // Many are sorted out at once.
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
    let (count, mut rows) = selection.pass(make, add, merge)?;
    keep(&mut rows);
    rows.sort_unstable();
    let places = rows.into_iter().skip(offset).map(|(_, _, place)| place);
    Ok((count, places.collect()))
}

/// How long the rows at some places last within a stretch of time.
fn in_view(
    ask: Ask<'_>,
    table: &Opened,
    span: TimeRange,
    places: &[Place],
) -> Result<Vec<Value>, ExploreError> {
    let in_view = InView::new(ask, table, span)?;
    let cell = |(chunk, row): &Place| {
        let ns = in_view.as_ref().map(|in_view| in_view.of(*chunk, *row));
        Value::from(ns.map(Number::Integer))
    };
    Ok(places.iter().map(cell).collect())
}

/// The cells of a column at some places.
fn cells(
    ask: Ask<'_>,
    table: &Opened,
    column: &'static ColumnDef,
    places: &[Place],
) -> Result<Vec<Value>, ExploreError> {
    match column.kind {
        ColumnKind::Key => {
            let keys = ask.keys(table, column)?;
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
            let numbers = ask.measures(table, column)?;
            let number = |(chunk, row): &Place| {
                let number = numbers.chunks[*chunk][*row];
                Value::from((number != NULL).then_some(Number::Integer(number)))
            };
            Ok(places.iter().map(number).collect())
        }
        ColumnKind::Text => texts(table, column, places),
        ColumnKind::Test => Err((table.def).wrong(column, "is not shown with rows; filter by it")),
    }
}

/// The cells of a column that is not decoded: only the chunks that are shown are read.
fn texts(
    table: &Opened,
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
    selection: &Selection<'_>,
    columns: &[&'static ColumnDef],
    span: TimeRange,
    sort: Option<(&'static ColumnDef, bool)>,
) -> String {
    let table = selection.table.def;
    let shown = columns.iter().map(|column| match column.source {
        Source::InView => format!("{} AS {}", InView::sql(table, span), column.name),
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
        query::filter(&selection.sql),
        order.join(", "),
        request.first
    );
    if request.offset > 0 {
        sql += &format!(" OFFSET {}", request.offset);
    }
    sql
}
