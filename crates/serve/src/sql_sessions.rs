//! SQL queries on the open traces.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use answer::{JsonColumn, json_rows};
use sql::{Query, Session, Settings, SqlError};
use tables::{Options, Table};

use crate::sql_json::{Catalogue, Column, Function, Question, Rows, SqlTable};
use crate::work::Cancellation;
use crate::{Refusal, ServedTrace};
use session::LazyCell;

/// Memory limit of a query, in bytes. Above this limit, the query uses temporary files. The limit leaves
/// memory for the explorers of traces.
const MEMORY_BYTES: usize = 1 << 30;

/// Default number of rows of an answer.
const ROWS: usize = 1000;

/// Maximum number of rows of an answer.
const MOST_ROWS: usize = 100_000;

/// Maximum number of bytes of the values of an answer, approximately.
const MOST_BYTES: usize = 32 << 20;

/// Sessions, keyed by the set of their traces.
pub(super) struct Sessions {
    traces: Vec<Arc<ServedTrace>>,
    open: Mutex<BTreeMap<Vec<usize>, Arc<LazyCell<Session>>>>,
}

/// Resolver of addresses to names of functions, for the traces of a session.
struct Symbols(Vec<Arc<ServedTrace>>);

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

impl sql::Symbols for Symbols {
    fn name(&self, trace: usize, image_row: u32, address: u64) -> Option<String> {
        let symbols = self.0.get(trace)?.symbols().ok()?;
        symbols.name(image_row as usize, address)
    }
}

impl Sessions {
    pub(super) fn new(traces: Vec<Arc<ServedTrace>>) -> Sessions {
        Sessions {
            traces,
            open: Mutex::default(),
        }
    }

    fn session(&self, about: Option<&[usize]>) -> Result<Arc<Session>, Refusal> {
        let mut ids: Vec<usize> = match about {
            Some(ids) => ids.to_vec(),
            None => (0..self.traces.len()).collect(),
        };
        ids.sort_unstable();
        ids.dedup();
        let traces = ids.iter().map(|id| self.traces.get(*id).cloned());
        let traces: Option<Vec<Arc<ServedTrace>>> = traces.collect();
        let Some(traces) = traces.filter(|traces| !traces.is_empty()) else {
            return Err(Refusal::bad(
                "`traces` must hold ids of open traces; `session` lists them",
            ));
        };
        let session = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(open.entry(ids).or_insert_with(|| Arc::new(LazyCell::new())))
        };
        session.get(|| {
            let named = traces.iter().map(|trace| trace.as_named()).collect();
            let settings = Settings {
                memory_bytes: MEMORY_BYTES,
                range: None,
                symbols: Some(Arc::new(Symbols(traces))),
            };
            Ok(Session::new(named, settings)?)
        })
    }

    /// Returns the rows of the last statement with a result. DataFusion checks for cancellation only when it reads
    /// rows. A join that makes many rows from few rows is therefore cancelled late.
    pub(super) fn answer(
        &self,
        question: &Question,
        cancellation: &Cancellation,
    ) -> Result<Rows, Refusal> {
        let started = Instant::now();
        let session = self.session(question.traces.as_deref())?;
        let progress = |_| cancellation.is_pending();
        let options = Options {
            progress: &progress,
        };
        let mut last: Option<Query<'_>> = None;
        for statement in sql::parse(&question.query)? {
            let query = session.prepare(&statement, options)?;
            last = Some(query)
                .filter(|query| !query.schema().fields().is_empty())
                .or(last);
        }
        let Some(query) = last else {
            return Ok(Rows {
                columns: Vec::new(),
                rows: Vec::new(),
                more: false,
                took_ms: milliseconds(started),
            });
        };
        let schema = query.schema();
        let first = question.first.unwrap_or(ROWS).min(MOST_ROWS);
        let (mut rows, mut bytes, mut more) = (Vec::new(), 0, false);
        let go_on = || cancellation.is_pending();
        for batch in query.batches(&go_on)? {
            let batch = batch?;
            let left = first - rows.len();
            let failed = |error: std::io::Error| Refusal::failed(error.to_string());
            more = json_rows(&batch, &schema, left, MOST_BYTES, &mut bytes, &mut rows)
                .map_err(failed)?;
            if more {
                break;
            }
        }
        Ok(Rows {
            columns: schema
                .fields()
                .iter()
                .map(|field| JsonColumn::from_field(field))
                .collect(),
            rows,
            more,
            took_ms: milliseconds(started),
        })
    }

    /// Returns the tables and views that can be queried.
    pub(super) fn catalogue(&self) -> Result<Catalogue, Refusal> {
        let session = self.session(None)?;
        let columns = |name: &str, meaning: &dyn Fn(&str) -> Option<String>| {
            let schema = session.columns(name)?;
            let fields = schema.fields().iter();
            let columns = fields.map(|field| Column {
                name: field.name().clone(),
                data_type: field.data_type().to_string(),
                about: meaning(field.name()),
            });
            Ok::<Vec<Column>, SqlError>(columns.collect())
        };
        let mut tables = Vec::new();
        for table in Table::ALL {
            let schema = table.schema();
            let meaning = |name: &str| {
                let column = schema.columns.iter().find(|column| column.name == name)?;
                Some(column.meaning.clone())
            };
            tables.push(SqlTable {
                name: schema.name,
                columns: columns(schema.name, &meaning)?,
                about: schema.prose.clone(),
                view: false,
            });
        }
        for (name, about) in sql::views() {
            tables.push(SqlTable {
                name,
                columns: columns(name, &|_| None)?,
                about,
                view: true,
            });
        }
        let own = sql::function_signatures().into_iter();
        let mut functions: Vec<Function> = own
            .map(|(signature, about)| Function {
                name: signature.split('(').next().unwrap_or_default().to_owned(),
                signature,
                about,
            })
            .collect();
        for name in session.function_names() {
            if !functions.iter().any(|function| function.name == name) {
                let signature = format!("{name}(…)");
                functions.push(Function {
                    name,
                    signature,
                    about: "",
                });
            }
        }
        Ok(Catalogue { tables, functions })
    }
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Refusal {
        let place = error.place();
        let refusal = match error {
            SqlError::Cancelled => Refusal::cancelled(),
            SqlError::Store(error) => error.into(),
            SqlError::Setup(_) => Refusal::failed(error.to_string()),
            SqlError::Memory { .. } => Refusal::bad(format!(
                "{error}; query fewer rows, or run `laglab sql` with --memory"
            )),
            error => Refusal::bad(error.to_string()),
        };
        match place {
            Some(place) => refusal.at(place.line, place.column),
            None => refusal,
        }
    }
}
