//! Tool `sql`: the user's questions.

use std::sync::Arc;

use answer::json_rows;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::Symbolication;
use sql::{NamedTrace, Query, Settings, Symbols};

use super::Session;
use crate::answer::{Answer, More, Room};
use crate::arguments;
use crate::failure::{Failure, Kind};
use crate::marks::Marks;
use crate::open_traces::OpenTrace;
use crate::results::{self, Rows};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    trace: Option<String>,
    query: String,
    first: Option<u32>,
    #[serde(default)]
    after: u64,
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<More>,
    /// Advice for tables of the query without rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    from_trace: String,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'static str,
}

/// Memory limit of a query. A query that needs more uses temporary files.
const MEMORY_BYTES: usize = 1 << 30;

/// Maximum and default number of rows.
const MOST: u32 = 200;
const FIRST: u32 = 50;

/// Maximum size of a result, in bytes. One batch of rows can exceed the limit for kept results. If the result is
/// larger than this maximum, the call fails.
const MOST_BYTES: usize = 128 << 20;

/// Maximum number of items of a list or fields of an object in a cell.
const ITEMS: usize = 64;

struct Names(Arc<Symbolication>);

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Symbols for Names {
    fn name(&self, _: usize, image_row: u32, address: u64) -> Option<String> {
        self.0.name(image_row as usize, address)
    }
}

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    let first = arguments::in_bounds("first", asked.first, 1..=MOST)?.unwrap_or(FIRST) as usize;
    let trace = session.open(asked.trace.as_deref())?;
    let rows = match trace.results.find(&asked.query) {
        Some(kept) => kept,
        None if asked.after > 0 => {
            return Err(Failure::unknown(
                "the result of this query is no longer kept; call `sql` again without `after`",
            ));
        }
        None => result(session, &trace, &asked.query)?,
    };
    page(&rows, asked.after, first, tokens)
}

/// Runs a query, and keeps its result.
fn result(session: &Session<'_>, trace: &OpenTrace, query: &str) -> Result<Arc<Rows>, Failure> {
    let queries = opened(trace, session)?;
    session.server.wait_for_queries(session.call)?;
    let mut last: Option<Query<'_>> = None;
    let mut missing: Vec<String> = Vec::new();
    let mut changes = false;
    let planned = session.call.watched(|options| {
        for statement in sql::parse(query)? {
            let query = queries.prepare(&statement, options)?;
            for table in queries.tables_of(&statement)? {
                let rows = trace.store.table(table, options)?.rows() as u64;
                missing.extend(super::missing(trace, table.name(), Some(rows)));
            }
            let has_columns = !query.schema().fields().is_empty();
            if has_columns && last.is_some() {
                return Err(Failure::arguments(
                    "only one statement may return rows; call `sql` once for each query",
                ));
            }
            changes |= !has_columns;
            last = Some(query).filter(|_| has_columns).or(last.take());
        }
        Ok::<(), Failure>(())
    });
    // If a statement fails, the statements before it may already have changed a view or table.
    if changes {
        trace.results.clear();
    }
    planned?;
    let prepared = last.ok_or_else(|| Failure::arguments("the query returns no columns"))?;
    session.call.begin_query();
    let flag = session.call.flag();
    let go_on = || !flag.load(std::sync::atomic::Ordering::Relaxed);
    let mut rows = Rows {
        query: query.to_owned(),
        schema: prepared.schema(),
        batches: Vec::new(),
        is_cut: false,
        missing,
    };
    let (mut count, mut bytes) = (0, 0);
    for batch in prepared.batches(&go_on)? {
        let batch = batch?;
        if count == results::ROWS || bytes > results::BYTES {
            rows.is_cut = true;
            break;
        }
        let rows_taken = batch.num_rows().min(results::ROWS - count);
        rows.is_cut = rows_taken < batch.num_rows();
        count += rows_taken;
        bytes += batch.get_array_memory_size();
        if bytes > MOST_BYTES {
            return Err(Failure::new(
                Kind::TooLarge,
                "the result is too large; aggregate or filter in the query, or select fewer columns",
            ));
        }
        rows.batches.push(batch.slice(0, rows_taken));
        if rows.is_cut {
            break;
        }
    }
    let rows = Arc::new(rows);
    trace.results.keep(Arc::clone(&rows));
    Ok(rows)
}

/// Returns a page of a result, as many rows as fit.
fn page(kept: &Rows, after: u64, first: usize, tokens: Option<u32>) -> Result<Answer, Failure> {
    let marks = Marks::new()?;
    let columns = kept.schema.fields().iter().map(|field| Column {
        name: marks.name(field.name()),
        unit: unit(field.name()),
    });
    let mut content = Content {
        answer: String::new(),
        columns: columns.collect(),
        rows: Vec::new(),
        more: None,
        missing: kept.missing.clone(),
        from_trace: marks.note(),
    };
    let mut room = Room::of_rows(tokens).without(report::json_bytes(&content) + 200);
    if room.is_full() {
        return Err(Failure::new(
            Kind::TooLarge,
            format!(
                "the names of the {} columns are too long for an answer; select fewer columns or give them shorter \
                 names",
                content.columns.len()
            ),
        ));
    }
    let all = kept.len() as u64;
    let mut skip = usize::try_from(after).unwrap_or(usize::MAX);
    'batches: for batch in &kept.batches {
        let from = skip.min(batch.num_rows());
        skip -= from;
        let batch = batch.slice(from, batch.num_rows() - from);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let wanted = first - content.rows.len();
        if batch.num_rows() == 0 {
            continue;
        }
        let cut = json_rows(&batch, &kept.schema, wanted, 1 << 20, &mut bytes, &mut rows)
            .map_err(|_| Failure::defect())?;
        for row in rows {
            let row: Vec<Value> = row.into_iter().map(|cell| marked(cell, &marks)).collect();
            if !room.take(&row) {
                break 'batches;
            }
            content.rows.push(row);
        }
        if cut {
            break;
        }
    }
    let shown = content.rows.len() as u64;
    let end = after.saturating_add(shown);
    if shown == 0 && after < all {
        return Err(Failure::new(
            Kind::TooLarge,
            format!(
                "row {} is too large for an answer; select fewer columns, or set a larger `max_tokens`",
                after + 1
            ),
        ));
    }
    let counted = wording::counted(all, "row", "rows");
    content.answer = match shown {
        0 if after > 0 => format!("`after` is past the end: there are {counted}."),
        _ if shown == all => format!("{counted}."),
        _ => format!("Rows {} to {end} of {counted}.", after + 1),
    };
    if kept.is_cut {
        content.answer +=
            " The query has further rows, which are not kept: aggregate or filter in it.";
    }
    content.more = (end < all).then(|| More {
        after: end,
        left: Some(all - end),
    });
    Answer::new(&content)
}

/// Returns the session of SQL of a trace.
fn opened(trace: &OpenTrace, session: &Session<'_>) -> Result<Arc<sql::Session>, Failure> {
    trace.session.get(|| {
        let symbols = trace.symbols(session.call)?;
        let named = NamedTrace {
            name: trace.file.handle.clone(),
            store: Arc::clone(&trace.store),
        };
        let settings = Settings {
            memory_bytes: MEMORY_BYTES,
            range: None,
            symbols: Some(Arc::new(Names(symbols))),
        };
        let queries = sql::Session::new(vec![named], settings)?;
        session.server.count_queries(queries.queries());
        Ok(queries)
    })
}

/// Returns a value in which texts are quoted or marked. If a list is cut, its last item says how many items are left
/// out.
fn marked(value: Value, marks: &Marks) -> Value {
    match value {
        // If scripts cannot represent an integer exactly, the engine returns it as a text of digits. `cell` does not
        // quote such a text.
        Value::String(text) => Value::String(marks.cell(&text)),
        Value::Number(number) => {
            let is_exact = |integer: u64| integer <= 1 << 53;
            let unsigned = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            if unsigned.is_none_or(is_exact) {
                Value::Number(number)
            } else {
                Value::String(number.to_string())
            }
        }
        Value::Array(items) => {
            let left = items.len().saturating_sub(ITEMS);
            let items = items.into_iter().take(ITEMS);
            let mut shown: Vec<Value> = items.map(|item| marked(item, marks)).collect();
            if left > 0 {
                shown.push(Value::String(format!(
                    "… {} more",
                    wording::grouped(left as u64)
                )));
            }
            Value::Array(shown)
        }
        Value::Object(fields) => {
            let left = fields.len().saturating_sub(ITEMS);
            let fields = fields.into_iter().take(ITEMS);
            let mut shown: serde_json::Map<String, Value> = fields
                .map(|(name, value)| (marks.name(&name), marked(value, marks)))
                .collect();
            if left > 0 {
                shown.insert("…".to_owned(), Value::from(format!("{left} more")));
            }
            Value::Object(shown)
        }
        other => other,
    }
}

fn unit(name: &str) -> &'static str {
    ["ns", "bytes"]
        .into_iter()
        .find(|unit| {
            name.strip_suffix(unit)
                .is_some_and(|rest| rest.ends_with('_'))
        })
        .unwrap_or_default()
}
